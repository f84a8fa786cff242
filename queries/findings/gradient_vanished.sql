/*---
title    = "Gradients are zero although nothing overflowed"
doc      = "The printed gradient norm is exactly zero on every one of the last steps, was not before, and no step was skipped for an overflow meanwhile: small gradients underflow, or nothing is connected to the loss any more."
fault    = "nan_inf"
severity = "warning"
kind     = "state"
reads    = ["metrics", "events"]
summary  = "the gradient norm is 0 from step {step} on ({steps} steps)"
[params]
least = { type = "BIGINT", default = 20, doc = "Steps in a row that are too many for a coincidence." }
[returns]
step = "BIGINT"
steps = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "zero to the end"
given.metrics = """
step | name      | value | line
1    | grad_norm | 0.5   | 1
2    | grad_norm | 0     | 2
3    | grad_norm | 0     | 3
4    | grad_norm | 0     | 4
"""
params = { least = 3 }
expect = """
step | steps | line
2    | 3     | 2
"""
[[case]]
name = "zero on single steps only"
given.metrics = """
step | name      | value | line
1    | grad_norm | 0.5   | 1
2    | grad_norm | 0     | 2
3    | grad_norm | 0.5   | 3
4    | grad_norm | 0     | 4
"""
params = { least = 3 }
expect = "step | steps"
---*/
WITH norms AS (
    SELECT step, max(value) AS value, min(source) AS source, min(line) AS line
    FROM metrics
    WHERE name = 'grad_norm' AND step IS NOT NULL
    GROUP BY step
),

last_alive AS (
    SELECT max(step) AS step FROM norms WHERE value <> 0 OR isnan(value)
)

SELECT
    min(n.step) AS step,
    count(*) AS steps,
    arg_min(n.source, n.step) AS source,
    arg_min(n.line, n.step) AS line,
    'the gradient norm is 0 on ' || count(*) || ' steps in a row' AS text
FROM norms AS n
CROSS JOIN last_alive AS a
WHERE
    n.step > a.step
    AND NOT EXISTS (
        SELECT 1 FROM events AS e WHERE e.kind = 'overflow' AND coalesce(e.step, e.after_step) >= a.step
    )
HAVING count(*) >= $least
