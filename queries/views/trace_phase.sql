/*---
title = "Where the time of each profiled step went"
doc = """
One row per rank, step and phase; the phases of a step add up to its duration exactly. A moment belongs to the first of
these that is going on: computing on the GPU, communication (on the GPU, and so not hidden behind computing), copies on the
GPU, waiting for the data loader, a collective on the CPU, a call of the CUDA or HIP runtime, an operator on the CPU, other.
"""
reads = ["trace_step", "trace_activity"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
phase = "VARCHAR"
duration = "BIGINT"
step_duration = "BIGINT"
[[case]]
name = "overlaps count once, the rest is other"
given.trace_step = """
source | rank | step | start_time | end_time | duration
a      | 0    | 1    | 100        | 200      | 100
a      | 0    | 2    | 200        | 300      | 100
"""
given.trace_activity = """
source | rank | level | start_time | end_time
a      | 0    | 1     | 110        | 130
a      | 0    | 1     | 120        | 140
a      | 0    | 2     | 135        | 160
a      | 0    | 7     | 150        | 170
a      | 0    | 4     | 190        | 230
"""
expect = """
step | phase         | duration
1    | gpu compute   | 30
1    | communication | 20
1    | data loader   | 10
1    | cpu operator  | 10
1    | other         | 30
2    | data loader   | 30
2    | other         | 70
"""
---*/
WITH clipped AS (
    SELECT
        s.run_id, s.source, s.step, a.level,
        greatest(a.start_time, s.start_time) AS start_time,
        least(a.end_time, s.end_time) AS end_time
    FROM trace_step AS s
    INNER JOIN trace_activity AS a
        ON
            a.run_id = s.run_id AND a.source = s.source
            AND a.start_time < s.end_time AND a.end_time > s.start_time
),

reached AS (
    SELECT
        c.run_id, c.source, c.step, l.level, c.start_time, c.end_time,
        max(c.end_time) OVER (
            PARTITION BY c.run_id, c.source, c.step, l.level
            ORDER BY c.start_time, c.end_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before
    FROM clipped AS c
    INNER JOIN range(1, 8) AS l (level) ON c.level <= l.level
),

covered AS (
    SELECT
        run_id, source, step, level,
        sum(greatest(end_time - greatest(start_time, coalesce(before, start_time)), 0)) AS covered
    FROM reached
    GROUP BY run_id, source, step, level
),

complete AS (
    SELECT
        s.run_id, s.source, s.rank, s.step, s.duration AS step_duration, l.level,
        CASE l.level WHEN 8 THEN s.duration ELSE coalesce(c.covered, 0) END AS covered
    FROM trace_step AS s
    CROSS JOIN range(1, 9) AS l (level)
    LEFT JOIN covered AS c
        ON c.run_id = s.run_id AND c.source = s.source AND c.step = s.step AND c.level = l.level
),

part AS (
    SELECT
        run_id, source, rank, step, step_duration, level,
        covered - lag(covered, 1, 0) OVER (PARTITION BY run_id, source, step ORDER BY level) AS duration
    FROM complete
)

SELECT
    run_id, source, rank, step,
    CASE level
        WHEN 1 THEN 'gpu compute' WHEN 2 THEN 'communication' WHEN 3 THEN 'gpu copy' WHEN 4 THEN 'data loader'
        WHEN 5 THEN 'communication' WHEN 6 THEN 'runtime call' WHEN 7 THEN 'cpu operator' ELSE 'other'
    END AS phase,
    CAST(sum(duration) AS BIGINT) AS duration,
    any_value(step_duration) AS step_duration
FROM part
GROUP BY run_id, source, rank, step, phase
HAVING sum(duration) > 0
ORDER BY run_id, rank, source, step, min(level)
