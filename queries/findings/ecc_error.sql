/*---
title    = "A device reported memory errors"
doc      = "The driver counted errors of a device's memory, or remapped rows of it."
fault    = "nan_inf"
severity = "evidence"
reads    = ["events"]
summary  = "{n} reports, the first: {text}"
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
ecc | symptom | double | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
throttle | symptom | thermal | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind = 'ecc'
ORDER BY time NULLS LAST, source, line
