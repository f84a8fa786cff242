/*---
title = "How far two twin runs are apart, step by step"
doc   = "The largest difference over ranks of each number that both runs print, 0 as long as they agree to the last digit. Steps that `twin_metric` does not read are equal before its first one; after it, the difference is that of the mean over ranks. Of every slice of the steps the largest difference of each name is listed, so that no parting is lost."
reads = ["twin_metric", "metric_steps"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
slices = { type = "BIGINT", default = 300, doc = "Number of slices." }
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
[[case]]
name = "far behind the first differences the means are compared"
given.twin_metric = """
run_id | rank | step | name | value | text
before | 0    | 90   | loss | 3     | 3
after  | 0    | 90   | loss | 4     | 4
"""
given.metric_steps = """
run_id | step | name | value
before | 1    | loss | 9
before | 90   | loss | 3
before | 2000 | loss | 1
after  | 1    | loss | 9.00001
after  | 90   | loss | 4
after  | 2000 | loss | 1.5
"""
expect = """
name | step | difference | rank
loss | 1    | 0          |
loss | 90   | 1          | 0
loss | 2000 | 0.5        |
"""
[[case]]
name = "two slices of two steps; what is not finite has no size"
params = { slices = 2 }
given.twin_metric = """
run_id | rank | step | name | value | text
before | 0    | 1    | loss | 3     | 3
before | 0    | 2    | loss | 3     | 3
before | 0    | 3    | loss | 3     | 3
before | 0    | 4    | loss | 3     | 3
after  | 0    | 1    | loss | 5     | 5
after  | 0    | 2    | loss | 4     | 4
after  | 0    | 3    | loss | 4     | 4
after  | 0    | 4    | loss | NaN   | nan
"""
expect = """
name | step | difference | rank
loss | 1    | 2          | 0
loss | 3    | 1          | 0
"""
---*/
WITH near AS (
    SELECT
        b.name, b.step,
        max(CASE WHEN b.text = a.text THEN 0.0 ELSE abs(b.value - a.value) END) AS difference,
        arg_max(coalesce(b.rank, 0), CASE WHEN b.text = a.text THEN 0.0 ELSE abs(b.value - a.value) END) AS rank
    FROM twin_metric AS b
    INNER JOIN twin_metric AS a ON coalesce(b.rank, -1) = coalesce(a.rank, -1) AND b.step = a.step AND b.name = a.name
    WHERE b.run_id = $before AND a.run_id = $after
    GROUP BY b.name, b.step
),

far AS (
    SELECT
        b.name, b.step,
        CASE
            WHEN b.step > (SELECT min(n.step) FROM near AS n) THEN abs(b.value - a.value) ELSE 0.0
        END AS difference,
        CAST(NULL AS INTEGER) AS rank
    FROM metric_steps AS b
    INNER JOIN metric_steps AS a ON b.step = a.step AND b.name = a.name
    WHERE b.run_id = $before AND a.run_id = $after AND b.step NOT IN (SELECT n.step FROM near AS n)
),

known AS (
    SELECT name, step, difference, rank FROM near WHERE isfinite(difference)
    UNION ALL
    SELECT name, step, difference, rank FROM far WHERE isfinite(difference)
),

sliced AS (
    SELECT
        name, step, difference, rank,
        (step - min(step) OVER ()) * $slices // (max(step) OVER () - min(step) OVER () + 1) AS slice
    FROM known
)

SELECT name, step, difference, rank
FROM sliced
QUALIFY row_number() OVER (PARTITION BY name, slice ORDER BY difference DESC, step) = 1
ORDER BY name, step
