/*---
title    = "A rank went away without a word"
doc      = "Every other rank that left a log complains of a lost peer, and exactly this rank, which had been making progress, neither complains nor raises anything: it died first. A rank that left no log at all is not named: it is listed under coverage. Nor is anybody where a peer ran out of time: a rank that hangs is as silent, and so is one that was stopped before it could complain."
fault    = "crash"
severity = "fault"
weight   = 1
confidence = "high"
reads    = ["events", "rank_progress", "run_summary"]
summary  = "rank {ranks} stopped after step {last_step} without a message, and every peer lost its connection"
[returns]
rank = "INTEGER"
step = "BIGINT"
last_step = "BIGINT"
complaints = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "rank 1 of 3 is silent, its peers lost it"
given.run_summary = """
world_size
3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 16        | log    | 5
1    | 16        | log    | 6
2    | 16        | log    | 7
"""
given.events = """
kind      | role    | rank | name         | line
exception | cascade | 0    | RuntimeError | 13
exception | cascade | 2    | RuntimeError | 19
"""
expect = """
rank | step | last_step | complaints | line
1    | 17   | 16        | 2          | 6
"""
[[case]]
name = "a rank without a log is not blamed for its silence"
given.run_summary = """
world_size
3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 16        | log    | 5
2    | 16        | log    | 7
"""
given.events = """
kind      | role    | rank | name         | line
exception | cascade | 0    | RuntimeError | 13
exception | cascade | 2    | RuntimeError | 19
"""
expect = "rank | step | last_step | complaints"
[[case]]
name = "a peer ran out of time, which closed the connections of the others"
given.run_summary = """
world_size
3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 16        | log    | 5
1    | 16        | log    | 6
2    | 16        | log    | 7
"""
given.events = """
kind      | role    | rank | name         | line
exception | cascade | 0    | RuntimeError | 13
watchdog  | symptom | 0    | gloo_timeout | 13
exception | cascade | 2    | RuntimeError | 19
"""
expect = "rank | step | last_step | complaints"
[[case]]
name = "two silent ranks: it cannot be told which died first"
given.run_summary = """
world_size
4
"""
given.rank_progress = """
rank | last_step | source | line
0    | 16        | log    | 5
1    | 16        | log    | 6
2    | 16        | log    | 7
3    | 16        | log    | 8
"""
given.events = """
kind      | role    | rank | name         | line
exception | cascade | 0    | RuntimeError | 13
exception | cascade | 2    | RuntimeError | 19
"""
expect = "rank | step | last_step | complaints"
[[case]]
name = "somebody raised an error of its own"
given.run_summary = """
world_size
2
"""
given.rank_progress = """
rank | last_step | source | line
0    | 16        | log    | 5
1    | 16        | log    | 6
"""
given.events = """
kind      | role    | rank | name         | line
exception | cascade | 0    | RuntimeError | 13
exception | root    | 1    | ValueError   | 19
"""
expect = "rank | step | last_step | complaints"
---*/
WITH complaining AS (
    SELECT DISTINCT rank FROM events WHERE kind = 'exception' AND role = 'cascade' AND rank IS NOT NULL
),

own AS (
    SELECT count(*) AS n FROM events WHERE kind = 'exception' AND role = 'root'
),

silent AS (
    SELECT p.rank, p.last_step, p.last_time, p.source, p.line
    FROM rank_progress AS p
    WHERE p.rank NOT IN (SELECT e.rank FROM events AS e WHERE e.kind IN ('exception', 'stack', 'signal') AND e.rank IS NOT NULL)
),

counts AS (
    SELECT
        (SELECT count(*) FROM silent) AS silent,
        (SELECT count(*) FROM complaining) AS complaints,
        (SELECT max(world_size) FROM run_summary) AS world_size,
        (SELECT n FROM own) AS own,
        (SELECT count(*) FROM events WHERE kind = 'barrier_missing' OR name IN ('gloo_timeout', 'monitored_barrier')) AS timeouts
)

SELECT
    s.rank,
    s.last_step + 1 AS step,
    s.last_step,
    c.complaints,
    s.last_time AS time,
    s.source, s.line,
    printf('last line of rank %d is step %d; %d other ranks report a lost connection', s.rank, s.last_step, c.complaints) AS text
FROM silent AS s
CROSS JOIN counts AS c
WHERE c.timeouts = 0 AND c.silent = 1 AND c.own = 0 AND c.complaints > 0 AND c.complaints = c.world_size - 1
