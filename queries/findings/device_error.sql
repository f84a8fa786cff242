/*---
title    = "A device or its driver reported an error"
doc      = "A CUDA call, a kernel or the driver failed on a device: what starts many crashes and hangs, and can spoil numbers. Errors that only follow from a peer are not listed."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} device errors, the first: {text}"
[returns]
rank = "INTEGER"
host = "VARCHAR"
step = "BIGINT"
name = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "reported once"
given.events = """
kind | role | name | rank | line | message
device_error | root | illegal | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
peer_lost | cascade | gloo | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind = 'device_error' AND role = 'root'
ORDER BY time NULLS LAST, source, line
