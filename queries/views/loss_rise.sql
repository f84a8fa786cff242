/*---
title = "Rises of the loss far above its course"
doc   = "One row per rise of a run's loss: where it began and what was typical before, the highest value, whether and when it came back (recovered, slow recovery, not recovered, undecided), and the median of the last losses of the run."
keep = true
reads = ["loss_steps"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
baseline = "DOUBLE"
highest = "DOUBLE"
kind = "VARCHAR"
back_at = "BIGINT"
final = "DOUBLE"
[[case]]
name = "a spike that comes back"
given.loss_steps = """
step | loss | text | line
1    | 3.00 | 3.00 | 1
2    | 3.01 | 3.01 | 2
3    | 2.99 | 2.99 | 3
4    | 3.00 | 3.00 | 4
5    | 3.01 | 3.01 | 5
6    | 90   | 90   | 6
7    | 2.99 | 2.99 | 7
8    | 3.00 | 3.00 | 8
9    | 3.01 | 3.01 | 9
10   | 2.99 | 2.99 | 10
11   | 3.00 | 3.00 | 11
12   | 3.01 | 3.01 | 12
13   | 2.99 | 2.99 | 13
14   | 3.00 | 3.00 | 14
15   | 3.01 | 3.01 | 15
16   | 2.99 | 2.99 | 16
17   | 3.00 | 3.00 | 17
"""
expect = """
step | baseline | highest | kind      | back_at | final
6    | 3        | 90      | recovered | 7       | 3
"""
[[case]]
name = "a smooth curve"
given.loss_steps = """
step | loss | text | line
1    | 3.0  | 3.0  | 1
2    | 2.9  | 2.9  | 2
3    | 2.8  | 2.8  | 3
4    | 2.7  | 2.7  | 4
"""
expect = "step | baseline | highest | kind"
---*/
WITH series AS (
    SELECT
        run_id,
        list(step ORDER BY step) AS steps,
        spikes(list(loss ORDER BY step)) AS found,
        list_median((list(loss ORDER BY step) FILTER (WHERE isfinite(loss)))[-20:]) AS final
    FROM loss_steps
    GROUP BY run_id
),

rises AS (
    SELECT run_id, steps, final, unnest(found) AS s FROM series
)

SELECT run_id, steps[s.place] AS step, s.baseline, s.highest, s.kind, steps[s.recovered] AS back_at, final
FROM rises
ORDER BY run_id, step
