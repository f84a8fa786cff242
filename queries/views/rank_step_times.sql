/*---
title = "Step time of every rank and step"
doc   = "Seconds per step as each rank printed them; where none did, from the times of its step lines; where there are no such lines, from profiler traces; where there are none, from the whole seconds that a progress bar or log says have passed, over stretches of ten seconds or more; where nothing else is known, the sum of the timers of forward, backward and step. One row per run, rank and step; a rank that is not known is NULL."
reads = ["metrics", "trace_step", "rank_phase_steps"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
seconds = "DOUBLE"
origin = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
[[case]]
name = "what is printed is preferred to what is measured between lines"
given.metrics = """
rank | step | name      | value | time       | line
0    | 1    | step_time | 0.5   |            | 1
0    | 2    | step_time | 0.25  |            | 2
1    | 1    | loss      | 3     | 1000000000 | 3
1    | 2    | loss      | 3     | 3000000000 | 4
"""
expect = """
rank | step | seconds | origin
0    | 1    | 0.5     | printed
0    | 2    | 0.25    | printed
"""
[[case]]
name = "without printed times, the times of consecutive step lines"
given.metrics = """
rank | step | name | value | time       | line
1    | 1    | loss | 3     | 1000000000 | 3
1    | 2    | loss | 3     | 3000000000 | 4
1    | 4    | loss | 3     | 7000000000 | 5
"""
expect = """
rank | step | seconds | origin
1    | 2    | 2       | stamps
1    | 4    | 2       | stamps
"""
[[case]]
name = "without step lines, the profiler's steps; a whole trace is no step"
given.trace_step = """
rank | step | duration   | start_time | origin
0    | 4    | 2000000000 | 100        | ProfilerStep
0    | 0    | 9000000000 | 100        | whole trace
"""
expect = """
rank | step | seconds | origin
0    | 4    | 2       | trace
"""
[[case]]
name = "without any of these, the seconds of a progress bar; a second run of it begins anew"
given.metrics = """
rank | attempt | step | name    | value | line
0    | 0       | 0    | elapsed | 0     | 1
0    | 0       | 1    | elapsed | 5     | 2
0    | 0       | 2    | elapsed | 8     | 3
0    | 0       | 3    | elapsed | 11    | 4
0    | 0       | 5    | elapsed | 17    | 5
0    | 0       | 6    | elapsed | 21    | 6
0    | 1       | 7    | elapsed | 2     | 7
0    | 1       | 8    | elapsed | 40    | 8
"""
expect = """
rank | step | seconds | origin
0    | 6    | 3.3333333333333335 | bar
0    | 8    | 38      | bar
"""
[[case]]
name = "timers alone"
given.rank_phase_steps = """
rank | step | phase | seconds
0    | 1    | fwd   | 1
0    | 1    | bwd   | 2
0    | 1    | step  | 0.5
0    | 2    | fwd   | 1
"""
expect = """
rank | step | seconds | origin
0    | 1    | 3.5     | timers
"""
---*/
WITH printed AS (
    SELECT run_id, rank, step, max(value) AS seconds, min(source) AS source, min(line) AS line, min(time) AS time
    FROM metrics
    WHERE name = 'step_time' AND step IS NOT NULL AND isfinite(value) AND value > 0
    GROUP BY ALL
),

-- Not taken from `printed`: then a query that leaves the printed rows out would still compute all of them.
printing AS (
    SELECT DISTINCT run_id
    FROM metrics
    WHERE name = 'step_time' AND step IS NOT NULL AND isfinite(value) AND value > 0
),

stamped AS (
    SELECT run_id, rank, step, min(time) AS time, min(source) AS source, min(line) AS line
    FROM metrics
    WHERE step IS NOT NULL AND time IS NOT NULL AND run_id NOT IN (SELECT run_id FROM printing)
    GROUP BY ALL
),

between_lines AS (
    SELECT
        run_id, rank, step, source, line, time,
        (time - lag(time) OVER same) / 1e9 / (step - lag(step) OVER same) AS seconds
    FROM stamped
    WINDOW same AS (PARTITION BY run_id, rank ORDER BY step)
),

-- The time of the first step holds the start; a bar that goes on where a checkpoint ended skips the steps before.
bars AS (
    SELECT
        run_id, rank, source, attempt, step,
        min(value) AS elapsed,
        min(line) AS line
    FROM metrics
    WHERE
        name = 'elapsed' AND step > 0
        AND run_id NOT IN (SELECT run_id FROM printing)
        AND run_id NOT IN (SELECT run_id FROM between_lines WHERE seconds > 0)
        AND run_id NOT IN (SELECT run_id FROM trace_step WHERE origin <> 'whole trace')
    GROUP BY ALL
),

stretches AS (
    SELECT
        run_id, rank, source, attempt,
        max(step) AS step,
        max(elapsed) AS elapsed,
        max(line) AS line
    FROM (
        SELECT
            run_id, rank, source, attempt, step, elapsed, line,
            floor(
                (elapsed - min(elapsed) OVER whole) / greatest(10, (max(elapsed) OVER whole - min(elapsed) OVER whole) / 400)
            ) AS stretch
        FROM bars
        WINDOW whole AS (PARTITION BY run_id, rank, source, attempt)
    )
    GROUP BY run_id, rank, source, attempt, stretch
),

from_bars AS (
    SELECT
        run_id, rank, step, source, line,
        (elapsed - lag(elapsed) OVER same) / (step - lag(step) OVER same) AS seconds
    FROM stretches
    WINDOW same AS (PARTITION BY run_id, rank, source, attempt ORDER BY step)
)

SELECT run_id, rank, step, seconds, 'printed' AS origin, source, line, time FROM printed
UNION ALL
SELECT run_id, rank, step, seconds, 'stamps' AS origin, source, line, time FROM between_lines WHERE seconds > 0
UNION ALL
SELECT run_id, rank, step, seconds, 'bar' AS origin, source, line, NULL AS time FROM from_bars WHERE seconds > 0
UNION ALL
SELECT run_id, rank, step, sum(seconds) AS seconds, 'timers' AS origin, NULL AS source, NULL AS line, NULL AS time
FROM rank_phase_steps
WHERE
    run_id NOT IN (
        SELECT run_id FROM metrics WHERE step IS NOT NULL AND (time IS NOT NULL OR name IN ('step_time', 'elapsed'))
        UNION
        SELECT run_id FROM trace_step
    )
GROUP BY run_id, rank, step
HAVING bool_or(phase = 'fwd') AND bool_or(phase IN ('bwd', 'bwd_inner')) AND bool_or(phase = 'step')
UNION ALL
SELECT
    run_id, rank, step,
    max(duration) / 1e9 AS seconds,
    'trace' AS origin,
    arg_max(source, duration) AS source,
    NULL AS line,
    min(start_time) AS time
FROM trace_step
WHERE
    origin <> 'whole trace' AND run_id NOT IN (
        SELECT run_id FROM printing
        UNION
        SELECT run_id FROM between_lines WHERE seconds > 0
    )
GROUP BY run_id, rank, step
ORDER BY run_id, rank, step
