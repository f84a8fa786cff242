/*---
title    = "The communication library could not be set up"
doc      = "Two ranks on one device, versions of the library that differ, no shared memory, no multicast: found when communicators are made."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} complaints, the first: {text}"
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
nccl_setup | root | duplicate_gpu | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
nccl_transport | root | ib_completion | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind = 'nccl_setup'
ORDER BY time NULLS LAST, source, line
