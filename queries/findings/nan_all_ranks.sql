/*---
title    = "The losses of all ranks turned at one step"
doc      = "At the first step with a loss that is not finite, at least two ranks printed losses of their own, and none was finite."
fault    = "nan_inf"
severity = "evidence"
reads    = ["losses"]
summary  = "at step {step} the losses of all {ranks_seen} ranks that print theirs are not finite"
[returns]
step = "BIGINT"
ranks_seen = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "both ranks"
given.losses = """
rank | step | loss | line
0    | 1    | 1    | 1
0    | 2    | nan  | 2
1    | 2    | inf  | 3
"""
expect = """
step | ranks_seen | line
2    | 2          | 2
"""
[[case]]
name = "only one rank prints a loss"
given.losses = """
rank | step | loss
0    | 2    | nan
"""
expect = "step"
[[case]]
name = "one of two"
given.losses = """
rank | step | loss
0    | 2    | nan
1    | 2    | 1
"""
expect = "step"
---*/
SELECT
    l.step,
    count(DISTINCT l.rank) AS ranks_seen,
    arg_min(l.source, l.rank) AS source,
    arg_min(l.line, l.rank) AS line
FROM losses AS l
WHERE l.rank IS NOT NULL AND l.step = (SELECT min(o.step) FROM losses AS o WHERE NOT isfinite(o.loss))
GROUP BY l.step
HAVING count(DISTINCT l.rank) > 1 AND count(*) FILTER (WHERE isfinite(l.loss)) = 0
ORDER BY l.step
