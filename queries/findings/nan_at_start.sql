/*---
title    = "The first loss was not finite already"
doc      = "No finite loss was ever printed before the first one that is not: weights, data or settings were bad from the start."
fault    = "nan_inf"
severity = "evidence"
reads    = ["losses"]
summary  = "the first printed losses, at step {step}, are not finite"
[returns]
step = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "from the first step on"
given.losses = """
rank | step | loss | line
0    | 1    | nan  | 7
1    | 1    | nan  | 8
0    | 2    | nan  | 9
"""
expect = """
step | line
1    | 7
"""
[[case]]
name = "one rank was finite first"
given.losses = """
rank | step | loss
0    | 1    | 3
0    | 2    | nan
"""
expect = "step"
---*/
SELECT
    step,
    arg_min(source, line) AS source,
    min(line) AS line
FROM losses
WHERE step = (SELECT min(f.step) FROM losses AS f)
GROUP BY step
HAVING count(*) FILTER (WHERE isfinite(loss)) = 0
ORDER BY step
