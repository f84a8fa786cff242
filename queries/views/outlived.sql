/*---
title = "Errors after which their writer went on training"
doc   = "An exception or a refused allocation that was caught: how many steps further the same rank came in the same file and attempt. Where its file has no steps, those that other ranks made more than a minute later: nobody steps on without a rank that is gone, and clocks of hosts agree within less. A few steps may be what buffered output brings late; one after which nobody came further has no row, or none above 0. One that stands before all steps of its writer (first) is either of the start or was not buffered as they were: it was caught if more follows than a buffer holds, or if an import failed, which no training outlives that needs it."
reads = ["events", "metrics", "step_clock"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
part = "INTEGER"
steps = "BIGINT"
first = "BOOLEAN"
[[case]]
name = "rank 1 went on for 26 steps in one file; what others, other files and later attempts did does not count"
given.metrics = """
source | attempt | rank | step | name
log    | 0       | 0    | 90   | loss
log    | 0       | 1    | 30   | loss
other  | 0       | 1    | 95   | loss
log    | 1       | 1    | 99   | loss
"""
given.events = """
kind      | source | attempt | rank | after_step | line
oom       | log    | 0       | 1    | 4          | 9
exception | log    | 0       | 1    | 30         | 50
exception | log    | 0       |      | 4          | 10
exception | more   | 0       | 1    | 4          | 9
exit      | log    | 0       | 1    | 4          | 11
"""
expect = """
source | line | steps
log    | 9    | 26
log    | 10   | 86
log    | 50   | 0
"""
[[case]]
name = "before all steps of its writer: an import that was tried; another error may be the end, printed before what was buffered"
given.metrics = """
source | attempt | rank | step | name | line
log    | 0       | 0    | 101  | loss | 20
log    | 0       | 0    | 130  | loss | 60
log    | 0       | 1    | 130  | loss | 61
"""
given.events = """
kind      | source | attempt | rank | after_step | line | name
exception | log    | 0       | 0    | 130        | 9    | ModuleNotFoundError
exception | log    | 0       | 1    | 130        | 10   | OSError
"""
expect = """
source | line | steps | first
log    | 9    | 30    | true
log    | 10   | 0     | true
"""
[[case]]
name = "a rank that prints no steps: what others did a minute later, where the time is known"
given.step_clock = """
attempt | step | time
0       | 3    | 30000000000
0       | 8    | 80000000000
0       | 90   | 900000000000
"""
given.events = """
kind      | source | attempt | rank | time        | line
exception | own    | 0       | 3    | 10000000000 | 7
exception | own    | 0       | 3    |             | 9
"""
expect = """
source | line | steps
own    | 7    | 82
"""
---*/
WITH reached AS (
    SELECT
        run_id, source, attempt, rank,
        min(step) AS first_step, max(step) AS last_step, min(line) AS first_line, count(DISTINCT line) AS lines
    FROM metrics
    -- Most runs have no such event, and then nothing is read.
    WHERE step IS NOT NULL AND source IN (SELECT e.source FROM events AS e WHERE e.kind IN ('exception', 'oom'))
    GROUP BY ALL
),

own AS (
    SELECT
        e.run_id, e.source, e.line, e.part,
        max(
            CASE
                -- io.DEFAULT_BUFFER_SIZE of CPython is 8 KiB: as much as 200 short lines.
                WHEN e.line < r.first_line AND (r.lines > 200 OR e.name IN ('ImportError', 'ModuleNotFoundError'))
                    THEN r.last_step - r.first_step + 1
                ELSE r.last_step - e.after_step
            END
        ) AS steps,
        coalesce(bool_and(e.line < r.first_line), FALSE) AS first
    FROM events AS e
    INNER JOIN reached AS r
        ON
            e.run_id = r.run_id AND e.source = r.source AND e.attempt IS NOT DISTINCT FROM r.attempt
            AND (e.rank IS NULL OR r.rank IS NULL OR e.rank = r.rank)
    WHERE e.kind IN ('exception', 'oom')
    GROUP BY e.run_id, e.source, e.line, e.part
),

elsewhere AS (
    SELECT run_id, source, line, part, coalesce(attempt, -1) AS attempt, time + 60000000000 AS later
    FROM events
    WHERE kind IN ('exception', 'oom') AND time IS NOT NULL AND (run_id, source) NOT IN (SELECT (r.run_id, r.source) FROM reached AS r)
),

course AS (
    SELECT
        run_id, coalesce(attempt, -1) AS attempt, step, time,
        max(step) OVER (PARTITION BY run_id, coalesce(attempt, -1)) AS last_step
    FROM step_clock
)

SELECT run_id, source, line, part, steps, first FROM own
UNION ALL
SELECT e.run_id, e.source, e.line, e.part, c.last_step - c.step AS steps, FALSE AS first
FROM elsewhere AS e
ASOF INNER JOIN course AS c ON e.run_id = c.run_id AND e.attempt = c.attempt AND e.later <= c.time
ORDER BY run_id, source, line, part
