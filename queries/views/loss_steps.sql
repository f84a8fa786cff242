/*---
title = "Loss of the job at each step"
doc   = "One row per run and step: the mean over ranks of what is finite (of the last attempt that made the step), the lowest rank's last printed text and where it stands, how many values were printed in all attempts, and how many of them are not finite. `samples` is the axis of monitors that count samples."
keep = true
reads = ["metrics"]
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
name = "one of two ranks prints nan; samples stand beside another metric; the last print's text"
given.metrics = """
rank | step | name | value | text | line | time | samples
1    | 1    | loss | NaN   | nan  | 5    | 10   |
0    | 1    | loss | 3     | 3.0  | 6    | 11   |
0    | 2    | loss | 2     | 2.0  | 7    | 12   |
0    | 2    | loss | 3     | 3.0  | 8    | 13   |
1    | 2    | loss | 4     | 4.0  | 7    | 14   |
0    | 2    | lr   | 1     | 1    | 9    | 13   | 64
0    | 3    | lr   | 1     | 1    | 9    | 13   | 96
"""
expect = """
step | loss | text | printed | not_finite | samples | line | time
1    | 3    | 3.0  | 2       | 1          |         | 6    | 10
2    | 3    | 3.0  | 3       | 0          | 64      | 8    | 12
"""
[[case]]
name = "a step that was made again counts as it was made last; what is not finite stays so where nothing else is"
given.metrics = """
rank | attempt | step | name | value | text | line
0    | 0       | 1    | loss | 9     | 9.0  | 1
0    | 1       | 1    | loss | 5     | 5.0  | 2
0    | 0       | 2    | loss | inf   | inf  | 3
"""
expect = """
step | loss | text | printed | not_finite
1    | 5    | 5.0  | 2       | 0
2    | inf  | inf  | 1       | 1
"""
---*/
-- A row per rank and step of a large run is more than memory holds, so nothing here groups by rank.
WITH made AS (
    SELECT
        run_id, step, attempt,
        -- Twelve digits: the last ones of a sum depend on the order of its terms, and twins are to be equal.
        coalesce(CAST(printf('%.12g', avg(value) FILTER (WHERE isfinite(value))) AS DOUBLE), any_value(value)) AS loss,
        -- Lowest rank first, and its last line: ranks are far below 2^20, lines below 2^40.
        arg_min(
            struct_pack("text" := text, "source" := source, line := line),
            coalesce(rank, -1) * 1099511627776 - coalesce(line, 0)
        ) AS place,
        min(time) AS time,
        count(*) AS printed,
        count(*) FILTER (WHERE NOT isfinite(value)) AS not_finite
    FROM metrics
    WHERE name = 'loss' AND step IS NOT NULL
    GROUP BY run_id, step, attempt
),

axis AS (
    SELECT run_id, step, max(samples) AS samples
    FROM metrics
    WHERE samples IS NOT NULL AND step IS NOT NULL
    GROUP BY run_id, step
),

finished AS (
    SELECT
        run_id, step,
        arg_max(loss, coalesce(attempt, -1)) AS loss,
        arg_max(place, coalesce(attempt, -1)) AS place,
        CAST(sum(printed) AS BIGINT) AS printed,
        CAST(sum(not_finite) AS BIGINT) AS not_finite,
        min(time) AS time
    FROM made
    GROUP BY run_id, step
)

SELECT
    f.run_id, f.step, f.loss, f.place.text AS text, f.printed, f.not_finite, a.samples,
    f.place.source AS source, f.place.line AS line, f.time
FROM finished AS f
LEFT JOIN axis AS a ON f.run_id = a.run_id AND f.step = a.step
ORDER BY f.run_id, f.step
