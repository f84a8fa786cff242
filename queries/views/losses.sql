/*---
title = "Loss of every rank and step"
doc   = "The training loss as each rank printed it; NaN and infinities are kept. A rank that is not known is NULL."
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
loss = "DOUBLE"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
[[case]]
name = "the last value of a step counts, and other metrics do not"
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | loss      | 3     | 3.0  | 1
0    | 1    | loss      | NaN   | nan  | 2
0    | 1    | grad_norm | 1     | 1    | 3
"""
expect = """
rank | step | loss | text | line
0    | 1    | nan  | nan  | 2
"""
---*/
SELECT
    run_id, rank, step,
    arg_max(value, line) AS loss,
    arg_max(text, line) AS text,
    arg_max(source, line) AS source,
    max(line) AS line,
    max(time) AS time
FROM metrics
WHERE name = 'loss' AND step IS NOT NULL
GROUP BY run_id, rank, step
ORDER BY run_id, rank, step
