/*---
title    = "The communication library reported a transport error"
doc      = "Errors of the network or link between ranks, in the communication library's words. Flushed work requests and closed connections follow from other errors and are not listed."
fault    = "comm_hang"
severity = "evidence"
reads    = ["events"]
summary  = "{n} transport errors, the first: {text}"
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
nccl_transport | root | ib_completion | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
nccl_transport | cascade | ib_flush | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind = 'nccl_transport' AND role <> 'cascade'
ORDER BY time NULLS LAST, source, line
