/*---
title    = "Device memory was refused"
doc      = "The refused allocation was one of device memory."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "device memory was refused on rank {rank}"
[returns]
rank = "INTEGER"
kind = "VARCHAR"
asked = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the device's"
given.events = """
kind | name   | rank | bytes | line
oom  | device | 1    | 4000  | 5
"""
expect = """
rank | kind   | asked | line
1    | device | 4000  | 5
"""
[[case]]
name = "the host's"
given.events = """
kind | name
oom  | host
"""
expect = "rank"
---*/
SELECT rank, name AS kind, bytes AS asked, time, source, line
FROM events
WHERE kind = 'oom' AND name = 'device'
ORDER BY time NULLS LAST, source, line
