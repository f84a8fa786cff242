/*---
title = "Loss and gradient norm of the job at each step"
doc   = "One row per run, metric and step: the mean of what the ranks printed, without what is not finite."
keep = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
name = "VARCHAR"
step = "BIGINT"
value = "DOUBLE"
[[case]]
name = "the mean of the ranks, without what is not finite"
given.metric = """
rank | step | name | value
0    | 1    | loss | 2
1    | 1    | loss | 4
0    | 2    | loss | 9
1    | 2    | loss | nan
0    | 3    | loss | 1
0    | 3    | lr   | 1
"""
expect = """
name | step | value
loss | 1    | 3
loss | 2    | 9
loss | 3    | 1
"""
---*/
-- Twelve digits: the last ones of a sum depend on the order of its terms, and twins are to be equal.
SELECT run_id, name, step, CAST(printf('%.12g', avg(value)) AS DOUBLE) AS value
FROM metric
WHERE name IN ('loss', 'grad_norm') AND isfinite(value) AND step IS NOT NULL
GROUP BY run_id, name, step
ORDER BY run_id, name, step
