/*---
title = "How far two twin runs are apart, step by step"
doc   = "The largest difference over ranks of each number that both runs print, 0 as long as they agree to the last digit."
reads = ["twin_metric"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
name = "VARCHAR"
step = "BIGINT"
difference = "DOUBLE"
rank = "INTEGER"
[[case]]
name = "they part at step 2, most on rank 1"
given.twin_metric = """
run_id | rank | step | name | value | text
before | 0    | 1    | loss | 3     | 3
before | 0    | 2    | loss | 3     | 3
before | 1    | 2    | loss | 3     | 3
after  | 0    | 1    | loss | 3     | 3
after  | 0    | 2    | loss | 4     | 4
after  | 1    | 2    | loss | 5     | 5
"""
expect = """
name | step | difference | rank
loss | 1    | 0          | 0
loss | 2    | 2          | 1
"""
---*/
SELECT
    b.name, b.step,
    max(CASE WHEN b.text = a.text THEN 0.0 ELSE abs(b.value - a.value) END) AS difference,
    arg_max(coalesce(b.rank, 0), CASE WHEN b.text = a.text THEN 0.0 ELSE abs(b.value - a.value) END) AS rank
FROM twin_metric AS b
INNER JOIN twin_metric AS a ON b.rank IS NOT DISTINCT FROM a.rank AND b.step = a.step AND b.name = a.name
WHERE b.run_id = $before AND a.run_id = $after
GROUP BY b.name, b.step
ORDER BY b.name, b.step
