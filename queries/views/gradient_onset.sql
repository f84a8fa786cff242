/*---
title = "Where the gradient norm is not finite again and again"
doc   = "One row per run: the first of at least five steps in a row whose gradient norm is NaN or infinite. A few are the normal search of an fp16 loss scale; many in a row are not, unless they are the first steps of the run, at most 40, and end: there the search starts from 2^16 or 2^32 and halves at each overflow (DeepSpeed runtime/config.py, initial_scale_power). Norms that state no step count by their order."
keep  = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
value = "DOUBLE"
in_a_row = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "six in a row after the first step"
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | grad_norm | 1     | 1    | 1
0    | 2    | grad_norm | inf   | inf  | 2
0    | 3    | grad_norm | NaN   | NaN  | 3
0    | 4    | grad_norm | NaN   | NaN  | 4
0    | 5    | grad_norm | NaN   | NaN  | 5
0    | 6    | grad_norm | NaN   | NaN  | 6
0    | 7    | grad_norm | NaN   | NaN  | 7
"""
expect = """
step | value | in_a_row | line
2    | inf   | 6        | 2
"""
[[case]]
name = "those that pass"
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | grad_norm | inf   | inf  | 1
0    | 2    | grad_norm | 1     | 1    | 2
0    | 3    | grad_norm | inf   | inf  | 3
0    | 4    | grad_norm | NaN   | NaN  | 4
0    | 5    | grad_norm | NaN   | NaN  | 5
0    | 6    | grad_norm | NaN   | NaN  | 6
0    | 7    | grad_norm | 1     | 1    | 7
"""
expect = "step | value"
[[case]]
name = "the first steps look for a loss scale, and find it"
given.metrics = """
rank | step | name      | value | text | line
0    | 1    | grad_norm | inf   | inf  | 1
0    | 2    | grad_norm | inf   | inf  | 2
0    | 3    | grad_norm | inf   | inf  | 3
0    | 4    | grad_norm | inf   | inf  | 4
0    | 5    | grad_norm | inf   | inf  | 5
0    | 6    | grad_norm | inf   | inf  | 6
0    | 7    | grad_norm | 1     | 1    | 7
"""
expect = "step | value"
[[case]]
name = "norms without a step: their order counts, and the step stays unknown"
given.metrics = """
name      | value | source | line
grad_norm | 0.5   | log    | 3
grad_norm | NaN   | log    | 5
grad_norm | NaN   | log    | 7
grad_norm | NaN   | log    | 8
grad_norm | NaN   | log    | 9
grad_norm | NaN   | log    | 11
"""
expect = """
step | in_a_row | line
     | 5        | 5
"""
---*/
-- A trainer may print its norms without the step (Hugging Face, trainer.py, without a progress bar): then their order.
WITH norms AS (
    SELECT run_id, step, step AS place, value, rank, time, source, line, text
    FROM metrics
    WHERE name = 'grad_norm' AND step IS NOT NULL
    UNION ALL
    SELECT
        m.run_id, m.step, row_number() OVER (PARTITION BY m.run_id, m.source, m.rank ORDER BY m.line) AS place,
        m.value, m.rank, m.time, m.source, m.line, m.text
    FROM metrics AS m
    WHERE
        m.name = 'grad_norm' AND m.step IS NULL
        AND m.run_id NOT IN (SELECT DISTINCT k.run_id FROM metrics AS k WHERE k.name = 'grad_norm' AND k.step IS NOT NULL)
),

steps AS (
    SELECT
        run_id, place,
        any_value(step) AS step,
        bool_or(NOT isfinite(value)) AS bad,
        arg_min(value, coalesce(rank, 0)) AS value,
        min(time) AS time,
        arg_min(source, coalesce(rank, 0)) AS source,
        arg_min(line, coalesce(rank, 0)) AS line,
        arg_min(text, coalesce(rank, 0)) AS text
    FROM norms
    GROUP BY run_id, place
),

numbered AS (
    SELECT
        run_id, place, step, bad, value, time, source, line, text,
        row_number() OVER (PARTITION BY run_id ORDER BY place) - row_number() OVER (PARTITION BY run_id, bad ORDER BY place)
            AS stretch,
        min(place) OVER (PARTITION BY run_id) AS first_place,
        max(place) OVER (PARTITION BY run_id) AS last_place
    FROM steps
),

stretches AS (
    SELECT
        run_id, first_place, last_place,
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
    GROUP BY run_id, first_place, last_place, stretch
    HAVING count(*) >= 5
)

SELECT run_id, step, value, in_a_row, time, source, line, text
FROM stretches
WHERE NOT (place = first_place AND in_a_row <= 40 AND last_bad < last_place)
QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY place) = 1
ORDER BY run_id
