/*---
title    = "A loss is no longer a finite number"
doc      = "The first step at which any rank's loss is NaN or infinite, and the ranks it is so on. A rank is named only where another rank's own loss was finite at that very step: where all turned together, or only one rank prints its loss, nothing says who began it."
fault    = "nan_inf"
severity = "fault"
weight   = 2
reads    = ["loss_onset"]
summary  = "the loss is {loss} from {since} on, begun by {who}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
since = "VARCHAR"
loss = "DOUBLE"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
confidence = "VARCHAR"
[[case]]
name = "one rank turns, the other is finite at the same step"
given.loss_onset = """
rank | step | loss | text | line
0    | 2    | 3    | 3    | 3
1    | 2    | NaN  | nan  | 4
"""
expect = """
rank | culprit | step | loss | line | confidence
1    | true    | 2    | nan  | 4    | high
"""
[[case]]
name = "all ranks turn together: nobody is named"
given.loss_onset = """
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
name = "a loss without its step"
given.loss_onset = """
rank | loss | text | line
0    | NaN  | nan  | 7
"""
expect = """
rank | culprit | step | since  | loss | line | confidence
0    | false   |      | line 7 | nan  | 7    | medium
"""
[[case]]
name = "finite losses"
expect = "rank | culprit | step"
[[case]]
name = "a finite loss of a rank that is not known says nothing of the others"
given.loss_onset = """
rank | step | loss | text | line
     | 2    | 3    | 3    | 3
1    | 2    | NaN  | nan  | 4
"""
expect = """
rank | culprit | step | loss | line | confidence
1    | false   | 2    | nan  | 4    | medium
"""
---*/
WITH at_onset AS (
    SELECT
        rank, step, loss, time, source, line, text,
        count(*) FILTER (WHERE isfinite(loss) AND rank IS NOT NULL) OVER () AS finite_ranks
    FROM loss_onset
)

SELECT
    rank,
    finite_ranks > 0 AND rank IS NOT NULL AS culprit,
    step,
    coalesce('step ' || step, 'line ' || line) AS since,
    loss, time, source, line,
    'loss=' || text AS text,
    CASE WHEN finite_ranks > 0 THEN 'high' ELSE 'medium' END AS confidence
FROM at_onset
WHERE NOT isfinite(loss)
ORDER BY rank
