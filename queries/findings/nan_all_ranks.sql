/*---
title    = "The losses of all ranks turned at one step"
doc      = "At the first step with a loss that is not finite, at least two ranks printed losses of their own, and none was finite."
fault    = "nan_inf"
severity = "evidence"
reads    = ["loss_onset"]
summary  = "at step {step} the losses of all {ranks_seen} ranks that print theirs are not finite"
[returns]
step = "BIGINT"
ranks_seen = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "both ranks"
given.loss_onset = """
rank | step | loss | line
0    | 2    | nan  | 2
1    | 2    | inf  | 3
"""
expect = """
step | ranks_seen | line
2    | 2          | 2
"""
[[case]]
name = "only one rank prints a loss"
given.loss_onset = """
rank | step | loss
0    | 2    | nan
"""
expect = "step"
[[case]]
name = "one of two"
given.loss_onset = """
rank | step | loss
0    | 2    | nan
1    | 2    | 1
"""
expect = "step"
---*/
SELECT
    step,
    count(DISTINCT rank) AS ranks_seen,
    arg_min(source, rank) AS source,
    arg_min(line, rank) AS line
FROM loss_onset
WHERE rank IS NOT NULL
GROUP BY step
HAVING count(DISTINCT rank) > 1 AND count(*) FILTER (WHERE isfinite(loss)) = 0
ORDER BY step
