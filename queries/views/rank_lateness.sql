/*---
title = "How much longer than the fastest rank each rank took"
doc   = "One row per run and rank, from the step times that the ranks printed, over about 2000 steps spread evenly: middle and range of the middle 80 % in ms, and in how many steps it was the slowest."
keep = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
n = "BIGINT"
low = "DOUBLE"
median = "DOUBLE"
high = "DOUBLE"
times_last = "BIGINT"
[[case]]
name = "rank 1 takes 0.2 s longer"
given.metric = """
rank | step | name      | value
0    | 1    | step_time | 0.5
1    | 1    | step_time | 0.7
0    | 2    | step_time | 0.5
1    | 2    | step_time | 0.7
1    | 3    | step_time | nan
"""
expect = """
rank | n | median | times_last
0    | 2 | 0      | 0
1    | 2 | 200    | 2
"""
---*/
WITH spans AS (
    SELECT run_id, min(step) AS low, greatest(1, (max(step) - min(step)) // 2000) AS stride
    FROM metric
    WHERE name = 'step_time'
    GROUP BY run_id
),

printed AS (
    SELECT m.run_id, m.rank, m.step, m.value * 1000 AS ms
    FROM metric AS m
    INNER JOIN spans AS s ON m.run_id = s.run_id
    WHERE
        m.name = 'step_time' AND isfinite(m.value) AND m.rank IS NOT NULL
        AND (m.step - s.low) % s.stride = 0
),

job AS (
    SELECT run_id, step, min(ms) AS fastest, max(ms) AS slowest
    FROM printed
    GROUP BY run_id, step
    HAVING count(*) > 1
)

SELECT
    p.run_id,
    p.rank,
    count(*) AS n,
    quantile_cont(p.ms - j.fastest, 0.1) AS low,
    quantile_cont(p.ms - j.fastest, 0.5) AS median,
    quantile_cont(p.ms - j.fastest, 0.9) AS high,
    count(*) FILTER (WHERE p.ms = j.slowest AND j.slowest > j.fastest) AS times_last
FROM printed AS p
INNER JOIN job AS j ON p.run_id = j.run_id AND p.step = j.step
GROUP BY p.run_id, p.rank
ORDER BY p.run_id, p.rank
