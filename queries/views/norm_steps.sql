/*---
title = "Gradient norm of the job at each step, as the largest that a rank printed"
doc   = "One row per run and step; NaN counts as larger than every number. Where it stands is the first file and line."
keep  = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
value = "DOUBLE"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "two ranks"
given.metric = """
rank | step | name      | value | source | line
0    | 1    | grad_norm | 0.5   | a      | 3
1    | 1    | grad_norm | 0.6   | a      | 4
0    | 2    | loss      | 0.5   | a      | 5
"""
expect = """
step | value | source | line
1    | 0.6   | a      | 3
"""
---*/
SELECT run_id, step, max(value) AS value, min(source) AS source, min(line) AS line
FROM metric
WHERE name = 'grad_norm' AND step IS NOT NULL
GROUP BY run_id, step
ORDER BY run_id, step
