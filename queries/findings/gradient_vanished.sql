/*---
title    = "Gradients vanish although nothing overflowed"
doc      = "On every one of the last steps the printed gradient norm is zero or below a ten thousandth of what was typical before, the loss did not fall with it, and no step was skipped for an overflow meanwhile: small gradients underflow, or nothing is connected to the loss any more. Gradients that shrink because the model learns its data by heart take the loss with them."
fault    = "nan_inf"
severity = "warning"
kind     = "state"
reads    = ["norm_steps", "loss_steps", "events"]
summary  = "the gradient norm is at most {highest} from step {step} on ({steps} steps), {typical} was typical before"
[params]
least = { type = "BIGINT", default = 20, doc = "Steps in a row that are too many for a coincidence." }
share = { type = "DOUBLE", default = 0.0001, doc = "Part of the typical norm below which gradients count as gone." }
[returns]
step = "BIGINT"
highest = "DOUBLE"
typical = "DOUBLE"
steps = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "zero to the end"
given.norm_steps = """
step | value | line
1    | 0.5   | 1
2    | 0     | 2
3    | 0     | 3
4    | 0     | 4
"""
params = { least = 3 }
expect = """
step | highest | typical | steps | line
2    | 0       | 0.5     | 3     | 2
"""
[[case]]
name = "they shrink without reaching zero, the loss stays"
given.norm_steps = """
step | value   | line
1    | 0.5     | 1
2    | 0.5     | 2
3    | 0.00004 | 3
4    | 0.00001 | 4
"""
given.loss_steps = """
step | loss
1    | 3
4    | 2.9
"""
params = { least = 2 }
expect = """
step | highest | steps | line
3    | 4e-05   | 2     | 3
"""
[[case]]
name = "the loss shrinks with them: the data is learnt by heart"
given.norm_steps = """
step | value   | line
1    | 0.5     | 1
2    | 0.5     | 2
3    | 0.00004 | 3
4    | 0.00001 | 4
"""
given.loss_steps = """
step | loss
1    | 3
4    | 0.001
"""
params = { least = 2 }
expect = "step | steps"
[[case]]
name = "zero on single steps only"
given.norm_steps = """
step | value | line
1    | 0.5   | 1
2    | 0     | 2
3    | 0.5   | 3
4    | 0     | 4
"""
params = { least = 3 }
expect = "step | steps"
---*/
WITH course AS (
    SELECT quantile_cont(value, 0.75) FILTER (WHERE value > 0 AND isfinite(value)) AS typical FROM norm_steps
),

last_alive AS (
    SELECT max(n.step) AS step FROM norm_steps AS n CROSS JOIN course AS c WHERE n.value >= $share * c.typical OR isnan(n.value)
),

gone AS (
    SELECT n.step, n.value, n.source, n.line, a.step AS last_alive
    FROM norm_steps AS n
    CROSS JOIN last_alive AS a
    WHERE n.step > a.step
),

losses AS (
    SELECT
        median(s.loss) FILTER (WHERE s.step <= a.step) AS before,
        median(s.loss) FILTER (WHERE s.step > a.step) AS after
    FROM loss_steps AS s
    CROSS JOIN last_alive AS a
    WHERE isfinite(s.loss)
)

SELECT
    min(g.step) AS step,
    max(g.value) AS highest,
    any_value(c.typical) AS typical,
    count(*) AS steps,
    arg_min(g.source, g.step) AS source,
    arg_min(g.line, g.step) AS line,
    'the gradient norm is at most ' || printf('%.3g', max(g.value)) || ' on ' || count(*) || ' steps in a row' AS text
FROM gone AS g
CROSS JOIN course AS c
CROSS JOIN losses AS l
WHERE
    NOT EXISTS (
        SELECT 1 FROM events AS e WHERE e.kind = 'overflow' AND coalesce(e.step, e.after_step) >= g.last_alive
    )
HAVING
    count(*) >= $least
    AND (max(g.value) = 0 OR coalesce(any_value(l.after) > 0.1 * any_value(l.before), TRUE))
