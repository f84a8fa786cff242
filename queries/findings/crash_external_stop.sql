/*---
title    = "The run was stopped from outside"
doc      = "A launcher was told to stop (SIGTERM or SIGINT: a scheduler's time limit, a preemption, an operator) before any process had ended well, and nothing of the run's own had failed before. Slurm cancels a step itself after one of its tasks failed: where an error code of another kind than a stop's (Terminated, Killed) is stated, the stop followed from it. It names no rank: the run did not fail by itself."
fault    = "crash"
severity = "fault"
confidence = "high"
reads    = ["events", "run_summary"]
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
given.events = """
kind          | role    | name    | message            | line
external_stop | root    | SIGTERM | received SIGTERM   | 7
external_stop | root    | SIGTERM | received SIGTERM   | 9
kill          | cascade | SIGTERM | Killing subprocess | 8
"""
expect = """
rank | last_step | line
     | 90        | 7
     | 90        | 9
"""
[[case]]
name = "an exception came first"
given.run_summary = """
last_step
90
"""
given.events = """
kind          | role | name       | message          | line
exception     | root | ValueError | bad              | 3
external_stop | root | SIGTERM    | received SIGTERM | 7
"""
expect = "rank | last_step | line"
[[case]]
name = "a process had ended well"
given.run_summary = """
last_step
90
"""
given.events = """
kind          | role     | code | message          | line
exit          | progress | 0    | done             | 3
external_stop | root     |      | received SIGTERM | 7
"""
expect = "rank | last_step | line"
[[case]]
name = "srun cancelled its step after a task failed"
given.events = """
kind          | role    | code | message          | line
exit          | symptom | -11  | task 4           | 3
external_stop | root    |      | STEP CANCELLED   | 7
"""
expect = "rank | last_step | line"
[[case]]
name = "a time limit: the processes that were killed for it are no cause"
given.run_summary = """
last_step
90
"""
given.events = """
kind          | role    | code | name       | message          | line
external_stop | root    |      | TIME LIMIT | JOB CANCELLED    | 7
exit          | symptom | -9   |            | task 4           | 9
"""
expect = """
rank | last_step | line
     | 90        | 7
"""
[[case]]
name = "Ctrl-C, seen by the processes alone"
given.run_summary = """
last_step
90
"""
given.events = """
kind      | role    | rank | name              | message | line
exception | cascade | 1    | KeyboardInterrupt |         | 3
"""
expect = """
rank | last_step | line
     | 90        | 3
"""
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    s.last_step,
    CAST(NULL AS BIGINT) AS step,
    e.time, e.source, e.line,
    e.message AS text
FROM events AS e
CROSS JOIN run_summary AS s
WHERE
    (e.kind = 'external_stop' OR (e.kind = 'exception' AND e.name IN ('KeyboardInterrupt', 'SignalException')))
    AND NOT EXISTS (
        SELECT 1 FROM events AS o
        WHERE
            (o.role = 'root' AND o.kind <> 'external_stop') OR (o.kind = 'exit' AND o.code = 0)
            OR (e.name IS NULL AND o.kind = 'exit' AND o.role = 'symptom' AND o.code NOT IN (-15, 143, -9, 137, -2, 130, -10, 138, -12, 140))
    )
ORDER BY e.time NULLS LAST, e.source, e.line
