/*---
title    = "One rank's loss turned while its peers' were finite"
doc      = "At the first step with a loss that is not finite, other ranks' own losses were finite: it began on these ranks, before any reduction."
fault    = "nan_inf"
severity = "evidence"
reads    = ["loss_onset"]
summary  = "at step {step} the loss of rank {rank} is {loss}, that of {finite} others is finite"
[returns]
rank = "INTEGER"
step = "BIGINT"
loss = "DOUBLE"
finite = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "rank 2 of 3"
given.loss_onset = """
rank | step | loss | line
0    | 1    | 1    | 1
1    | 1    | 1    | 2
2    | 1    | nan  | 3
"""
expect = """
rank | step | loss | finite | line
2    | 1    | nan  | 2      | 3
"""
[[case]]
name = "all turned together, or only one rank prints"
given.loss_onset = """
rank | step | loss | line
0    | 1    | nan  | 1
1    | 1    | inf  | 2
"""
expect = "rank"
---*/
WITH at_onset AS (
    SELECT rank, step, loss, source, line, count(*) FILTER (WHERE isfinite(loss)) OVER () AS finite
    FROM loss_onset
    WHERE rank IS NOT NULL
)

SELECT rank, step, loss, finite, source, line
FROM at_onset
WHERE finite > 0 AND NOT isfinite(loss)
ORDER BY rank
