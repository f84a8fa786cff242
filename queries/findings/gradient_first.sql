/*---
title    = "The gradient turned before any loss did"
doc      = "At the first of several steps in a row with a gradient norm that is not finite, the losses were finite: what went wrong came after the forward pass, in the backward pass, the scaling or the reduction."
fault    = "nan_inf"
severity = "evidence"
reads    = ["gradient_onset", "loss_onset"]
summary  = "the gradient norm turned at step {step}, {loss}"
[returns]
step = "BIGINT"
loss = "VARCHAR"
[[case]]
name = "a step before the loss; with the loss; and no loss turned"
given.gradient_onset = """
run_id | step | value
a      | 49   | NaN
b      | 50   | NaN
c      | 51   | NaN
"""
given.loss_onset = """
run_id | rank | step | loss
a      | 0    | 50   | NaN
b      | 0    | 50   | NaN
"""
expect = """
step | loss
49   | the loss at step 50
51   | no loss did
"""
[[case]]
name = "a log without steps"
given.gradient_onset = """
value | line
NaN   | 31
"""
expect = "step | loss"
---*/
WITH turned AS (
    SELECT run_id, min(step) AS step, count(*) AS losses FROM loss_onset WHERE NOT isfinite(loss) GROUP BY run_id
)

SELECT g.step, CASE WHEN t.losses IS NULL THEN 'no loss did' ELSE 'the loss at step ' || t.step END AS loss
FROM gradient_onset AS g
LEFT JOIN turned AS t ON g.run_id = t.run_id
WHERE g.step IS NOT NULL AND (t.losses IS NULL OR g.step < t.step)
ORDER BY g.step
