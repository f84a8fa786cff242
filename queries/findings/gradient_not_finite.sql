/*---
title    = "Gradients are not finite again and again"
doc      = "Steps whose gradient norm is NaN or infinite. A few are the normal search of an fp16 loss scale; many in a row are not, unless they are the first steps of the run and end: there the search starts from 2^16 or 2^32 and halves at each overflow (DeepSpeed runtime/config.py, initial_scale_power)."
fault    = "nan_inf"
severity = "fault"
reads    = ["metrics"]
summary  = "the gradient norm is {value} from step {step} on, {in_a_row} steps in a row"
[params]
least = { type = "BIGINT", default = 5, doc = "Steps in a row that are no search for a loss scale any more." }
search = { type = "BIGINT", default = 40, doc = "Steps from the first one on that the search for a loss scale may take." }
[returns]
rank = "INTEGER"
step = "BIGINT"
value = "DOUBLE"
in_a_row = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "five in a row"
params.least = 2
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | grad_norm | 1     | 1    | 1
0    | 2    | grad_norm | inf   | inf  | 2
0    | 3    | grad_norm | NaN   | nan  | 3
"""
expect = """
rank | step | value | in_a_row | line
     | 2    | inf   | 2        | 2
"""
[[case]]
name = "one that passes"
params.least = 2
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | grad_norm | inf   | inf  | 1
0    | 2    | grad_norm | 1     | 1    | 2
0    | 3    | grad_norm | inf   | inf  | 3
"""
expect = "rank | step | value"
[[case]]
name = "the first steps look for a loss scale, and find it"
params.least = 2
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | grad_norm | inf   | inf  | 1
0    | 2    | grad_norm | inf   | inf  | 2
0    | 3    | grad_norm | 1     | 1    | 3
"""
expect = "rank | step | value"
---*/
WITH steps AS (
    SELECT
        step,
        bool_or(NOT isfinite(value)) AS bad,
        arg_min(value, coalesce(rank, 0)) AS value,
        min(time) AS time,
        arg_min(source, coalesce(rank, 0)) AS source,
        arg_min(line, coalesce(rank, 0)) AS line,
        arg_min(text, coalesce(rank, 0)) AS text
    FROM metrics
    WHERE name = 'grad_norm' AND step IS NOT NULL
    GROUP BY step
),

numbered AS (
    SELECT
        step, bad, value, time, source, line, text,
        row_number() OVER (ORDER BY step) - row_number() OVER (PARTITION BY bad ORDER BY step) AS stretch
    FROM steps
),

stretches AS (
    SELECT
        min(step) AS step,
        max(step) AS last_bad,
        arg_min(value, step) AS value,
        count(*) AS in_a_row,
        arg_min(time, step) AS time,
        arg_min(source, step) AS source,
        arg_min(line, step) AS line,
        arg_min(text, step) AS text
    FROM numbered
    WHERE bad
    GROUP BY stretch
    HAVING count(*) >= $least
)

-- The norm is taken after the reduction, so it names no rank.
SELECT
    CAST(NULL AS INTEGER) AS rank,
    step, value, in_a_row, time, source, line,
    'grad_norm=' || text AS text
FROM stretches
WHERE
    NOT (
        step = (SELECT min(s.step) FROM steps AS s)
        AND in_a_row <= $search
        AND last_bad < (SELECT max(s.step) FROM steps AS s)
    )
ORDER BY step
LIMIT 1
