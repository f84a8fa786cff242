/*---
title      = "The network under NCCL failed"
doc        = "InfiniBand completions with an error, asynchronous events of a device and failed queue pairs. Both ends of a link complain, so no rank is named; the first complaint is the nearest to the cause. Flushed requests and closed connections only follow."
fault      = "comm_hang"
severity   = "fault"
weight     = 1
confidence = "medium"
reads      = ["events"]
summary    = "{name} on {host}: {text}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
name = "VARCHAR"
host = "VARCHAR"
code = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "retries exceeded, then flushes"
given.events = """
kind           | role    | name          | host | code | source | line | message
nccl_transport | root    | ib_completion | n1   | 12   | log    | 4    | NET/IB : Got completion with error 12
nccl_transport | cascade | ib_flush      | n2   | 5    | log    | 5    | NET/IB : Got completion with error 5
"""
expect = """
rank | culprit | name          | host | code | line
     | false   | ib_completion | n1   | 12   | 4
"""
[[case]]
name = "a flush alone"
given.events = """
kind           | role    | name     | host | code
nccl_transport | cascade | ib_flush | n2   | 5
"""
expect = "rank | culprit"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    FALSE AS culprit,
    coalesce(name, 'error') AS name,
    host,
    code,
    coalesce(step, after_step + 1) AS step,
    time,
    source,
    line,
    message AS text
FROM events
WHERE kind = 'nccl_transport' AND role = 'root'
ORDER BY time NULLS LAST, source, line
