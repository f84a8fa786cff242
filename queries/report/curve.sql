/*---
title = "Loss and gradient norm over steps, in slices"
doc = """One row per metric and slice of steps, over the mean of all ranks: first, lowest, highest and last value and the
median. Values that are not finite are left to the query nonfinite."""
reads = ["metric_steps"]
[params]
slices = { type = "INTEGER", default = 120, doc = "Number of slices at most." }
[returns]
name = "VARCHAR"
step = "BIGINT"
last_step = "BIGINT"
n = "BIGINT"
first = "DOUBLE"
last = "DOUBLE"
low_step = "BIGINT"
low = "DOUBLE"
high_step = "BIGINT"
high = "DOUBLE"
median = "DOUBLE"
[[case]]
name = "two slices of one metric, one of the other"
params = { slices = 2 }
given.metric_steps = """
step | name      | value
1    | loss      | 3
2    | loss      | 9
3    | loss      | 1
3    | grad_norm | 1
"""
expect = """
name      | step | last_step | n | first | last | low_step | low | high_step | high | median
grad_norm | 3    | 3         | 1 | 1     | 1    | 3        | 1   | 3         | 1    | 1
loss      | 1    | 2         | 2 | 3     | 9    | 1        | 3   | 2         | 9    | 6
loss      | 3    | 3         | 1 | 1     | 1    | 3        | 1   | 3         | 1    | 1
"""
---*/
WITH job AS (
    SELECT name, step, avg(value) AS value
    FROM metric_steps
    GROUP BY name, step
),

span AS (SELECT min(step) AS low, max(step) AS high FROM job),

sliced AS (
    SELECT job.name, job.step, job.value, (job.step - span.low) * $slices // (span.high - span.low + 1) AS slice
    FROM job CROSS JOIN span
)

SELECT
    name,
    min(step) AS step,
    max(step) AS last_step,
    count(*) AS n,
    arg_min(value, step) AS first,
    arg_max(value, step) AS last,
    arg_min(step, value) AS low_step,
    min(value) AS low,
    arg_max(step, value) AS high_step,
    max(value) AS high,
    median(value) AS median
FROM sliced
GROUP BY name, slice
ORDER BY name, step
