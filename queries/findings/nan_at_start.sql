/*---
title    = "The first loss was not finite already"
doc      = "No finite loss was ever printed before the first one that is not: weights, data or settings were bad from the start."
fault    = "nan_inf"
severity = "evidence"
reads    = ["loss_steps"]
summary  = "the first printed losses, at step {step}, are not finite"
[returns]
step = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "from the first step on"
given.loss_steps = """
step | printed | not_finite | line
1    | 2       | 2          | 7
2    | 1       | 1          | 9
"""
expect = """
step | line
1    | 7
"""
[[case]]
name = "one rank was finite first"
given.loss_steps = """
step | printed | not_finite
1    | 2       | 1
2    | 1       | 1
"""
expect = "step"
---*/
SELECT step, source, line
FROM loss_steps
WHERE step = (SELECT min(f.step) FROM loss_steps AS f) AND not_finite = printed
ORDER BY step
