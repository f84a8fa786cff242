/*---
title    = "Device memory had errors that could not be corrected"
doc      = "Counters of uncorrectable errors above zero, and rows that could not be replaced, as nvidia-smi -q printed them."
severity = "evidence"
reads    = ["events"]
summary  = "{what} on {host}"
[returns]
host = "VARCHAR"
what = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a counter above zero"
given.events = """
kind | host | name               | line | message
ecc  | n1   | DRAM Uncorrectable | 7    | DRAM Uncorrectable : 3
"""
expect = """
host | what               | line | text
n1   | DRAM Uncorrectable | 7    | DRAM Uncorrectable : 3
"""
[[case]]
name = "other events"
given.events = """
kind | host | name | line
xid  | n1   | x    | 7
"""
expect = "host | what"
---*/
SELECT
    coalesce(host, 'a host that is not named') AS host,
    name AS what,
    time, source, line,
    trim(message) AS text
FROM events
WHERE kind = 'ecc'
ORDER BY host, what, source, line
