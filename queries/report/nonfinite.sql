/*---
title = "Losses and gradient norms that are not finite"
doc = "One row per metric, rank and kind of value: the first and last step, and how many."
reads = ["metric_not_finite"]
[params]
most = { type = "INTEGER", default = 4096, doc = "Rows at most, earliest first." }
[returns]
name = "VARCHAR"
rank = "INTEGER"
value = "VARCHAR"
first_step = "BIGINT"
last_step = "BIGINT"
n = "BIGINT"
[[case]]
name = "the earliest first"
given.metric_not_finite = """
name      | rank | value | first_step | last_step | n
loss      | 2    | NaN   | 15         | 16        | 2
grad_norm | 0    | Inf   | 15         | 15        | 1
loss      | 0    | NaN   | 9          | 9         | 1
"""
expect = """
name      | rank | value | first_step | last_step | n
loss      | 0    | NaN   | 9          | 9         | 1
grad_norm | 0    | Inf   | 15         | 15        | 1
loss      | 2    | NaN   | 15         | 16        | 2
"""
---*/
SELECT name, rank, value, first_step, last_step, n
FROM metric_not_finite
ORDER BY first_step, name, rank, value
LIMIT $most
