/*---
title    = "A device reports a fault of its own"
doc      = "Errors of the CUDA runtime whose cause is seldom the program: memory or links that cannot be corrected, a hardware stack, and the unknown error that remains of a device that is lost."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{name}"
[returns]
rank = "INTEGER"
name = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a link"
given.events = """
kind         | role | rank | name                         | line | message
device_error | root | 1    | uncorrectable NVLink error   | 5    | words
"""
expect = """
rank | line
1    | 5
"""
[[case]]
name = "a program's error"
given.events = """
kind         | role | rank | name                                | line
device_error | root | 1    | an illegal memory access was encountered | 5
"""
expect = "rank"
---*/
SELECT rank, name, time, source, line, message AS text
FROM events
WHERE kind = 'device_error' AND role = 'root' AND regexp_matches(name, '^(?:uncorrectable |hardware stack error|unknown error)')
ORDER BY time NULLS LAST, source, line
