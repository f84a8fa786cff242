/*---
title    = "Pinned host memory was refused"
doc      = "The driver could not lock pages of the host for transfers (cudaHostAlloc): by batches of a loader with pin_memory, or by offloaded optimizer states."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "pinned host memory was refused: {text}"
[returns]
rank = "INTEGER"
asked = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "pinned memory"
given.events = """
kind | name          | rank | line | message
oom  | pinned        | 1    | 6    | words
"""
expect = """
rank | line | text
1    | 6    | words
"""
[[case]]
name = "the host's"
given.events = """
kind | name
oom  | host
"""
expect = "rank"
---*/
SELECT rank, bytes AS asked, time, source, line, message AS text
FROM events
WHERE kind = 'oom' AND name = 'pinned'
ORDER BY time NULLS LAST, source, line
