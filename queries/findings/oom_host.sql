/*---
title    = "Host memory was refused"
doc      = "The refused allocation was one of ordinary host memory, or the kernel killed a process for the lack of it."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "{kind} memory was refused"
[returns]
rank = "INTEGER"
kind = "VARCHAR"
asked = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the host's, and shared memory"
given.events = """
kind | name          | rank | bytes | line
oom  | host          | 1    | 4000  | 5
oom  | shared_memory |      |       | 6
"""
expect = """
rank | kind          | asked | line
1    | host          | 4000  | 5
"""
[[case]]
name = "the device's"
given.events = """
kind | name
oom  | device
"""
expect = "rank"
---*/
SELECT rank, name AS kind, bytes AS asked, time, source, line
FROM events
WHERE kind = 'oom' AND name = 'host'
ORDER BY time NULLS LAST, source, line
