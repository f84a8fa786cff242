/*---
title = "Loss of every rank and step"
doc   = "The training loss as each rank printed it; NaN and infinities are kept. A rank that is not known is NULL. A step that a restart made again has a row per attempt."
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
attempt = "INTEGER"
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
[[case]]
name = "a restart does not write over what was before it"
given.metrics = """
rank | attempt | step | name | value | text | line
0    | 0       | 1    | loss | NaN   | nan  | 1
0    | 1       | 1    | loss | 3     | 3.0  | 9
"""
expect = """
rank | attempt | step | loss | line
0    | 0       | 1    | nan  | 1
0    | 1       | 1    | 3    | 9
"""
---*/
SELECT
    run_id, rank, attempt, step,
    arg_max(value, line) AS loss,
    arg_max(text, line) AS text,
    arg_max(source, line) AS source,
    max(line) AS line,
    max(time) AS time
FROM metrics
WHERE name = 'loss' AND step IS NOT NULL
GROUP BY run_id, rank, attempt, step
ORDER BY run_id, rank, attempt, step
