/*---
title = "Loss of the job at each step"
doc   = "One row per run and step: the median over ranks, the lowest rank's printed text, and how many ranks printed a value that is not finite. `samples` is the axis of monitors that count samples."
reads = ["losses", "metric"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
loss = "DOUBLE"
text = "VARCHAR"
not_finite = "BIGINT"
samples = "BIGINT"
[[case]]
name = "one of two ranks prints nan"
given.losses = """
rank | step | loss | text
1    | 1    | NaN  | nan
0    | 1    | 3    | 3.0
0    | 2    | 2.5  | 2.5
"""
given.metric = """
rank | step | name | samples
0    | 2    | lr   | 64
"""
expect = """
step | loss | text | not_finite | samples
1    | 3    | 3.0  | 1          |
2    | 2.5  | 2.5  | 0          | 64
"""
---*/
WITH axis AS (
    SELECT run_id, step, max(samples) AS samples
    FROM metric
    WHERE samples IS NOT NULL AND step IS NOT NULL
    GROUP BY run_id, step
)

SELECT
    l.run_id, l.step,
    coalesce(median(l.loss) FILTER (WHERE isfinite(l.loss)), any_value(l.loss)) AS loss,
    arg_min(l.text, coalesce(l.rank, -1)) AS text,
    count(*) FILTER (WHERE NOT isfinite(l.loss)) AS not_finite,
    any_value(a.samples) AS samples
FROM losses AS l
LEFT JOIN axis AS a ON l.run_id = a.run_id AND l.step = a.step
GROUP BY l.run_id, l.step
ORDER BY l.run_id, l.step
