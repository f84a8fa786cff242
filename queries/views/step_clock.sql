/*---
title = "When the job first printed each step"
doc   = "One row per attempt and step that any rank printed with a stamp."
keep  = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
attempt = "INTEGER"
step = "BIGINT"
time = "BIGINT"
[[case]]
name = "two ranks"
given.metric = """
rank | attempt | step | time
0    | 0       | 3    | 20
1    | 0       | 3    | 10
1    | 0       | 4    |
"""
expect = """
attempt | step | time
0       | 3    | 10
"""
---*/
SELECT run_id, attempt, step, min(time) AS time
FROM metric
WHERE step IS NOT NULL AND time IS NOT NULL
GROUP BY run_id, attempt, step
ORDER BY run_id, attempt, step
