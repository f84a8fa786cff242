/*---
title = "What trainers count of skipped steps"
doc   = "DeepSpeed's running count (skipped_steps, runtime/engine.py), and Megatron's counts since its line before (skipped_iterations and nan_iterations, training.py): one row per attempt, name and step."
keep  = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
attempt = "INTEGER"
name = "VARCHAR"
step = "BIGINT"
value = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
[[case]]
name = "two ranks print the same count"
given.metric = """
name          | rank | attempt | step | value | source | line
skipped_steps | 0    | 0       | 10   | 2     | a      | 5
skipped_steps | 1    | 0       | 10   | 2     | b      | 4
loss          | 0    | 0       | 10   | 2     | a      | 6
"""
expect = """
attempt | name          | step | value | source | line
0       | skipped_steps | 10   | 2     | a      | 4
"""
---*/
SELECT
    run_id, attempt, name, step,
    CAST(max(value) AS BIGINT) AS value,
    min(source) AS source,
    min(line) AS line,
    min(time) AS time
FROM metric
WHERE name IN ('skipped_steps', 'skipped_iterations', 'nan_iterations') AND step IS NOT NULL AND isfinite(value) AND value < 1e15
GROUP BY run_id, attempt, name, step
ORDER BY run_id, attempt, name, step
