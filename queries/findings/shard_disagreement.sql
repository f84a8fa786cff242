/*---
title    = "Ranks disagreed about the parameters to gather"
doc      = "DeepSpeed's stage 3 found that ranks gather other parameters than their peers, or other modules than in the steps before: they take different paths through the model."
fault    = "comm_hang"
severity = "evidence"
reads    = ["events"]
summary  = "{n} disagreements, the first: {text}"
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
disagreement | root | list | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
mismatch | root | gloo_size | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind IN ('disagreement', 'trace_cache')
ORDER BY time NULLS LAST, source, line
