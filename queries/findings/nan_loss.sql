/*---
title    = "A loss is no longer a finite number"
doc      = "The first step at which any rank's loss is NaN or infinite, and the ranks it is so on. A rank is named only where another rank's own loss was finite at that very step: where all turned together, or only one rank prints its loss, nothing says who began it."
fault    = "nan_inf"
severity = "fault"
weight   = 2
reads    = ["losses"]
summary  = "the loss is {loss} from step {step} on, begun by {who}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
loss = "DOUBLE"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
confidence = "VARCHAR"
[[case]]
name = "one rank turns, the other is finite at the same step and turns later"
given.losses = """
rank | step | loss | text | line
0    | 1    | 3    | 3    | 1
1    | 1    | 3    | 3    | 2
0    | 2    | 3    | 3    | 3
1    | 2    | NaN  | nan  | 4
0    | 3    | NaN  | nan  | 5
1    | 3    | NaN  | nan  | 6
"""
expect = """
rank | culprit | step | loss | line | confidence
1    | true    | 2    | nan  | 4    | high
"""
[[case]]
name = "all ranks turn together: nobody is named"
given.losses = """
rank | step | loss | text | line
0    | 1    | inf  | inf  | 1
1    | 1    | NaN  | nan  | 2
"""
expect = """
rank | culprit | step | loss | line | confidence
0    | false   | 1    | inf  | 1    | medium
1    | false   | 1    | nan  | 2    | medium
"""
[[case]]
name = "finite losses"
given.losses = """
rank | step | loss | text | line
0    | 1    | 3    | 3    | 1
"""
expect = "rank | culprit | step"
[[case]]
name = "the attempt before a restart turned; what the restart printed at that step says nothing of it"
given.losses = """
rank | attempt | step | loss | text | line
0    | 0       | 2    | NaN  | nan  | 3
1    | 0       | 2    | NaN  | nan  | 4
0    | 1       | 2    | 3    | 3    | 8
1    | 1       | 2    | 3    | 3    | 9
"""
expect = """
rank | culprit | step | loss | line | confidence
0    | false   | 2    | nan  | 3    | medium
1    | false   | 2    | nan  | 4    | medium
"""
---*/
WITH onset AS (
    SELECT attempt, step FROM losses WHERE NOT isfinite(loss) ORDER BY attempt NULLS FIRST, step LIMIT 1
),

at_onset AS (
    SELECT
        l.rank, l.step, l.loss, l.time, l.source, l.line, l.text,
        count(*) FILTER (WHERE isfinite(l.loss) AND l.rank IS NOT NULL) OVER () AS finite_ranks
    FROM losses AS l
    INNER JOIN onset ON l.step = onset.step AND l.attempt IS NOT DISTINCT FROM onset.attempt
)

SELECT
    rank,
    finite_ranks > 0 AND rank IS NOT NULL AS culprit,
    step, loss, time, source, line,
    'loss=' || text AS text,
    CASE WHEN finite_ranks > 0 THEN 'high' ELSE 'medium' END AS confidence
FROM at_onset
WHERE NOT isfinite(loss)
ORDER BY rank
