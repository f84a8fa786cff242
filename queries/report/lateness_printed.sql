/*---
title = "How much longer than the fastest rank each rank took"
doc = """One row per rank, from the step times that the ranks printed, over at most 2000 steps spread evenly. Ranks wait for
each other in collectives, so equal times clear no rank."""
reads = ["metric"]
instead_of = "lateness"
[returns]
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
WITH span AS (
    SELECT min(step) AS low, greatest(1, (max(step) - min(step)) // 2000) AS stride
    FROM metric
    WHERE name = 'step_time'
),

printed AS (
    SELECT metric.rank, metric.step, metric.value * 1000 AS ms
    FROM metric CROSS JOIN span
    WHERE
        metric.name = 'step_time' AND isfinite(metric.value) AND metric.rank IS NOT NULL
        AND (metric.step - span.low) % span.stride = 0
),

job AS (
    SELECT step, min(ms) AS fastest, max(ms) AS slowest
    FROM printed
    GROUP BY step
    HAVING count(*) > 1
)

SELECT
    printed.rank,
    count(*) AS n,
    approx_quantile(printed.ms - job.fastest, 0.1) AS low,
    approx_quantile(printed.ms - job.fastest, 0.5) AS median,
    approx_quantile(printed.ms - job.fastest, 0.9) AS high,
    count(*) FILTER (WHERE printed.ms = job.slowest AND job.slowest > job.fastest) AS times_last
FROM printed INNER JOIN job ON printed.step = job.step
GROUP BY printed.rank
ORDER BY printed.rank
