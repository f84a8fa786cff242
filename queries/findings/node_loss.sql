/*---
title    = "A host was lost"
doc      = "The scheduler says that a host failed."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "host {host}: {text}"
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
node_loss | root | NODE_FAIL | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
external_stop | root | TIME LIMIT | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind = 'node_loss'
ORDER BY time NULLS LAST, source, line
