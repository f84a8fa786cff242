/*---
title    = "One rank's loss turned while its peers' were finite"
doc      = "At the first step with a loss that is not finite, other ranks' own losses were finite: it began on these ranks, before any reduction."
fault    = "nan_inf"
severity = "evidence"
reads    = ["losses"]
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
given.losses = """
rank | step | loss | line
0    | 1    | 1    | 1
1    | 1    | 1    | 2
2    | 1    | nan  | 3
0    | 2    | nan  | 4
"""
expect = """
rank | step | loss | finite | line
2    | 1    | nan  | 2      | 3
"""
[[case]]
name = "all turned together, or only one rank prints"
given.losses = """
rank | step | loss | line
0    | 1    | nan  | 1
1    | 1    | inf  | 2
"""
expect = "rank"
---*/
WITH onset AS (
    SELECT attempt, step FROM losses WHERE NOT isfinite(loss) ORDER BY attempt NULLS FIRST, step LIMIT 1
),

at_onset AS (
    SELECT
        l.rank, l.step, l.loss, l.source, l.line,
        count(*) FILTER (WHERE isfinite(l.loss)) OVER () AS finite
    FROM losses AS l
    INNER JOIN onset ON l.step = onset.step AND l.attempt IS NOT DISTINCT FROM onset.attempt
    WHERE l.rank IS NOT NULL
)

SELECT rank, step, loss, finite, source, line
FROM at_onset
WHERE finite > 0 AND NOT isfinite(loss)
ORDER BY rank
