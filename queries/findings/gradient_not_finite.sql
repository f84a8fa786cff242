/*---
title    = "Gradients are not finite again and again"
doc      = "Steps whose gradient norm is NaN or infinite. A few are the normal search of an fp16 loss scale; many in a row are not, unless they are the first steps of the run and end: there the search starts from 2^16 or 2^32 and halves at each overflow (DeepSpeed runtime/config.py, initial_scale_power)."
fault    = "nan_inf"
severity = "fault"
weight   = 1
reads    = ["metrics"]
summary  = "the gradient norm is {value} from {since} on, {in_a_row} times in a row"
[params]
least = { type = "BIGINT", default = 5, doc = "Steps in a row that are no search for a loss scale any more." }
search = { type = "BIGINT", default = 40, doc = "Steps from the first one on that the search for a loss scale may take." }
[returns]
rank = "INTEGER"
step = "BIGINT"
value = "DOUBLE"
in_a_row = "BIGINT"
since = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "norms without a step: their order counts, and the step stays unknown"
given.metrics = """
name      | value | source | line
grad_norm | 0.5   | log    | 3
grad_norm | NaN   | log    | 5
grad_norm | NaN   | log    | 7
"""
params = { least = 2 }
expect = """
step | in_a_row | since  | line
     | 2        | line 5 | 5
"""
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
-- A trainer may print its norms without the step (Hugging Face, trainer.py, without a progress bar): then their order.
WITH norms AS (
    SELECT step, step AS place, value, rank, time, source, line, text
    FROM metrics
    WHERE name = 'grad_norm' AND step IS NOT NULL
    UNION ALL
    SELECT
        m.step, row_number() OVER (PARTITION BY m.source, m.rank ORDER BY m.line) AS place,
        m.value, m.rank, m.time, m.source, m.line, m.text
    FROM metrics AS m
    WHERE
        m.name = 'grad_norm' AND m.step IS NULL
        AND NOT EXISTS (SELECT 1 FROM metrics AS k WHERE k.name = 'grad_norm' AND k.step IS NOT NULL)
),

steps AS (
    SELECT
        place,
        any_value(step) AS step,
        bool_or(NOT isfinite(value)) AS bad,
        arg_min(value, coalesce(rank, 0)) AS value,
        min(time) AS time,
        arg_min(source, coalesce(rank, 0)) AS source,
        arg_min(line, coalesce(rank, 0)) AS line,
        arg_min(text, coalesce(rank, 0)) AS text
    FROM norms
    GROUP BY place
),

numbered AS (
    SELECT
        place, step, bad, value, time, source, line, text,
        row_number() OVER (ORDER BY place) - row_number() OVER (PARTITION BY bad ORDER BY place) AS stretch
    FROM steps
),

stretches AS (
    SELECT
        min(place) AS place,
        min(step) AS step,
        max(place) AS last_bad,
        arg_min(value, place) AS value,
        count(*) AS in_a_row,
        arg_min(time, place) AS time,
        arg_min(source, place) AS source,
        arg_min(line, place) AS line,
        arg_min(text, place) AS text
    FROM numbered
    WHERE bad
    GROUP BY stretch
    HAVING count(*) >= $least
)

-- The norm is taken after the reduction, so it names no rank.
SELECT
    CAST(NULL AS INTEGER) AS rank,
    step, value, in_a_row,
    coalesce('step ' || step, 'line ' || line) AS since,
    time, source, line,
    'grad_norm=' || text AS text
FROM stretches
WHERE
    NOT (
        place = (SELECT min(s.place) FROM steps AS s)
        AND in_a_row <= $search
        AND last_bad < (SELECT max(s.place) FROM steps AS s)
    )
ORDER BY place
LIMIT 1
