/*---
title = "Loss of the job at each step"
doc   = "One row per run and step: the median over ranks, the lowest rank's printed text and where it stands, how many values ranks printed (each attempt counts), and how many of them are not finite. `samples` is the axis of monitors that count samples."
keep = "steps"
reads = ["losses", "metric"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
loss = "DOUBLE"
text = "VARCHAR"
printed = "BIGINT"
not_finite = "BIGINT"
samples = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
[[case]]
name = "one of two ranks prints nan"
given.losses = """
rank | step | loss | text | line | time
1    | 1    | NaN  | nan  | 5    | 10
0    | 1    | 3    | 3.0  | 6    | 11
0    | 2    | 2.5  | 2.5  | 7    | 12
"""
given.metric = """
rank | step | name | samples
0    | 2    | lr   | 64
"""
expect = """
step | loss | text | printed | not_finite | samples | line | time
1    | 3    | 3.0  | 2       | 1          |         | 6    | 10
2    | 2.5  | 2.5  | 1       | 0          | 64      | 7    | 12
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
    count(*) AS printed,
    count(*) FILTER (WHERE NOT isfinite(l.loss)) AS not_finite,
    any_value(a.samples) AS samples,
    arg_min(l.source, coalesce(l.rank, -1)) AS source,
    arg_min(l.line, coalesce(l.rank, -1)) AS line,
    min(l.time) AS time
FROM losses AS l
LEFT JOIN axis AS a ON l.run_id = a.run_id AND l.step = a.step
GROUP BY l.run_id, l.step
ORDER BY l.run_id, l.step
