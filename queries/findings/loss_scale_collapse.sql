/*---
title    = "The loss scale fell to 1 or less"
doc      = "The dynamic loss scale stood at 1 or less at the end after it had been a hundred times larger. A scale that recovers is the normal search and is not listed."
fault    = "nan_inf"
severity = "evidence"
reads    = ["metrics"]
summary  = "the loss scale fell to {scale}"
[returns]
scale = "DOUBLE"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "from 65536 to 1 and not back"
given.metrics = """
name       | step | value | line
loss_scale | 1    | 65536 | 1
loss_scale | 2    | 256   | 2
loss_scale | 3    | 1     | 3
"""
expect = """
scale | step | line
1     | 3    | 3
"""
[[case]]
name = "fell and recovered; or was small from the start"
given.metrics = """
name       | step | value | line
loss_scale | 1    | 65536 | 1
loss_scale | 2    | 1     | 2
loss_scale | 3    | 512   | 3
"""
expect = "scale"
---*/
WITH scales AS (
    SELECT step, value, time, source, line FROM metrics WHERE name = 'loss_scale' AND isfinite(value)
),

path AS (
    SELECT
        max(value) AS highest,
        arg_max(value, (step, line)) AS scale,
        arg_max(step, (step, line)) AS step,
        arg_max(time, (step, line)) AS time,
        arg_max(source, (step, line)) AS source,
        arg_max(line, (step, line)) AS line
    FROM scales
)

SELECT scale, step, time, source, line
FROM path
WHERE scale <= 1 AND highest >= 100 * scale
