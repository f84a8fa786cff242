/*---
title = "How high the loss scale was, and where it ended"
doc   = "One row per run: the largest dynamic loss scale, and the last one, with where it was printed."
keep  = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
highest = "DOUBLE"
scale = "DOUBLE"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "fell and recovered a little"
given.metrics = """
name       | step | value | line
loss_scale | 1    | 65536 | 1
loss_scale | 2    | 1     | 2
loss_scale | 3    | 512   | 3
loss_scale | 4    | inf   | 4
"""
expect = """
highest | scale | step | line
65536   | 512   | 3    | 3
"""
---*/
SELECT
    run_id,
    max(value) AS highest,
    arg_max(value, (step, line)) AS scale,
    arg_max(step, (step, line)) AS step,
    arg_max(time, (step, line)) AS time,
    arg_max(source, (step, line)) AS source,
    arg_max(line, (step, line)) AS line
FROM metrics
WHERE name = 'loss_scale' AND isfinite(value)
GROUP BY run_id
ORDER BY run_id
