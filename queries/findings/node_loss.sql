/*---
title    = "A host was lost"
doc      = "The scheduler, the launcher or the connection to it says that a host failed. It names no rank: those of the host did not fail by themselves."
fault    = "crash"
severity = "fault"
weight   = 1
confidence = "high"
reads    = ["events"]
summary  = "a host was lost{named}: {text}"
[returns]
rank = "INTEGER"
named = "VARCHAR"
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
node_loss | root | NODE_FAIL | 1 | 5 | words
"""
expect = """
rank | line | text
     | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
external_stop | root | TIME LIMIT | 1
"""
expect = "rank"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    coalesce(' (' || host || ')', '') AS named,
    host,
    coalesce(step, after_step + 1) AS step,
    name, time, source, line,
    message AS text
FROM events
WHERE kind = 'node_loss'
ORDER BY time NULLS LAST, source, line
