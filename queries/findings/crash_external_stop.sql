/*---
title    = "The run was stopped from outside"
doc      = "A launcher was told to stop (SIGTERM or SIGINT: a scheduler's time limit, a preemption, an operator) before any process had ended well, and nothing of the run's own had failed before. What the statement is worth beside errors and exit codes is said in the view stop. It names no rank: the run did not fail by itself."
fault    = "crash"
severity = "fault"
confidence = "high"
reads    = ["events", "run_summary", "stop"]
summary  = "the run was stopped from outside after step {last_step}; no error of its own stands before it"
[returns]
rank = "INTEGER"
last_step = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "the launchers of two nodes receive SIGTERM"
given.run_summary = """
last_step
90
"""
given.stop = """
message          | line
received SIGTERM | 7
received SIGTERM | 9
"""
given.events = """
kind | role    | name    | message            | line
kill | cascade | SIGTERM | Killing subprocess | 8
"""
expect = """
rank | last_step | line
     | 90        | 7
     | 90        | 9
"""
[[case]]
name = "a process had ended well"
given.run_summary = """
last_step
90
"""
given.stop = """
message          | line
received SIGTERM | 7
"""
given.events = """
kind | role     | code | message | line
exit | progress | 0    | done    | 3
"""
expect = "rank | last_step | line"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    s.last_step,
    CAST(NULL AS BIGINT) AS step,
    e.time, e.source, e.line,
    e.message AS text
FROM stop AS e
CROSS JOIN run_summary AS s
WHERE NOT EXISTS (SELECT 1 FROM events AS o WHERE o.kind = 'exit' AND o.code = 0)
ORDER BY e.time NULLS LAST, e.source, e.line
