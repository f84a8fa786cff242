/*---
title = "How far every rank got"
doc   = "The last step that each rank itself printed, and where."
keep = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
first_step = "BIGINT"
last_step = "BIGINT"
last_time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the last step of each rank"
given.metrics = """
rank | step | name | value | line
0    | 1    | loss | 3     | 1
0    | 2    | loss | 3     | 4
1    | 1    | loss | 3     | 2
     | 9    | loss | 3     | 8
"""
expect = """
rank | first_step | last_step | line
0    | 1          | 2         | 4
1    | 1          | 1         | 2
"""
---*/
SELECT
    run_id, rank,
    min(step) AS first_step,
    max(step) AS last_step,
    arg_max(time, step) AS last_time,
    arg_max(source, step) AS source,
    arg_max(line, step) AS line
FROM metrics
WHERE rank IS NOT NULL AND step IS NOT NULL
GROUP BY run_id, rank
ORDER BY run_id, rank
