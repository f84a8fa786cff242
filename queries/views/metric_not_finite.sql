/*---
title = "Losses and gradient norms that are not finite"
doc   = "One row per run, metric, rank and kind of value: the first and last step, and how many."
keep = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
name = "VARCHAR"
rank = "INTEGER"
value = "VARCHAR"
first_step = "BIGINT"
last_step = "BIGINT"
n = "BIGINT"
[[case]]
name = "NaN and infinity are told apart"
given.metrics = """
rank | step | name      | value
2    | 15   | loss      | nan
2    | 16   | loss      | nan
0    | 15   | grad_norm | inf
0    | 16   | grad_norm | 1
0    | 15   | lr        | nan
"""
expect = """
name      | rank | value | first_step | last_step | n
grad_norm | 0    | Inf   | 15         | 15        | 1
loss      | 2    | NaN   | 15         | 16        | 2
"""
---*/
SELECT
    run_id,
    name,
    rank,
    CASE WHEN isnan(value) THEN 'NaN' WHEN value > 0 THEN 'Inf' ELSE '-Inf' END AS value,
    min(step) AS first_step,
    max(step) AS last_step,
    count(*) AS n
FROM metrics
WHERE name IN ('loss', 'grad_norm') AND NOT isfinite(value) AND step IS NOT NULL
GROUP BY ALL
ORDER BY run_id, first_step, name, rank, value
