/*---
title = "Step time of the job, in slices"
doc = """One row per slice of steps: its first, lowest, highest and last value (so that no spike is lost), its median and
the range of its middle 80 %. Printed, else from the times of step lines, else from profiler traces; a step of the job
takes as long as its slowest rank."""
reads = ["step_times"]
[params]
slices = { type = "INTEGER", default = 120, doc = "Number of slices at most." }
[returns]
step = "BIGINT"
last_step = "BIGINT"
n = "BIGINT"
first = "DOUBLE"
last = "DOUBLE"
low_step = "BIGINT"
low = "DOUBLE"
high_step = "BIGINT"
high = "DOUBLE"
p10 = "DOUBLE"
median = "DOUBLE"
p90 = "DOUBLE"
[[case]]
name = "a spike inside a slice is kept"
params = { slices = 2 }
given.step_times = """
step | seconds
1    | 0.2
2    | 0.9
3    | 0.3
4    | 0.4
5    | 0.5
"""
expect = """
step | last_step | n | first | last | low_step | low | high_step | high | median
1    | 3         | 3 | 200   | 300  | 1        | 200 | 2         | 900  | 300
4    | 5         | 2 | 400   | 500  | 4        | 400 | 5         | 500  | 450
"""
---*/
WITH job AS (
    SELECT step, max(seconds) * 1000 AS ms
    FROM step_times
    GROUP BY step
),

span AS (SELECT min(step) AS low, max(step) AS high FROM job),

sliced AS (
    SELECT job.step, job.ms, (job.step - span.low) * $slices // (span.high - span.low + 1) AS slice
    FROM job CROSS JOIN span
)

SELECT
    min(step) AS step,
    max(step) AS last_step,
    count(*) AS n,
    arg_min(ms, step) AS first,
    arg_max(ms, step) AS last,
    arg_min(step, ms) AS low_step,
    min(ms) AS low,
    arg_max(step, ms) AS high_step,
    max(ms) AS high,
    quantile_cont(ms, 0.1) AS p10,
    median(ms) AS median,
    quantile_cont(ms, 0.9) AS p90
FROM sliced
GROUP BY slice
ORDER BY step
