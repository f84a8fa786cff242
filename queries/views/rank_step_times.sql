/*---
title = "Step time of every rank and step"
doc   = "Seconds per step as each rank printed them; where none did, from the times of its step lines; where there are no such lines, from profiler traces. One row per run, rank and step; a rank that is not known is NULL."
reads = ["metrics", "trace_step"]
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
)

SELECT run_id, rank, step, seconds, 'printed' AS origin, source, line, time FROM printed
UNION ALL
SELECT run_id, rank, step, seconds, 'stamps' AS origin, source, line, time FROM between_lines WHERE seconds > 0
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
