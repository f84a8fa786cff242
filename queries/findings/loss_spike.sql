/*---
title    = "The loss rose far above its course"
severity = "note"
reads    = ["loss_steps"]
summary  = "the loss rose from {baseline} to {highest} at step {step}: {kind}"
[returns]
rank = "INTEGER"
step = "BIGINT"
baseline = "DOUBLE"
highest = "DOUBLE"
kind = "VARCHAR"
back_at = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
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
step | baseline | highest | kind
6    | 3        | 90      | recovered
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
    SELECT list(step ORDER BY step) AS steps, spikes(list(loss ORDER BY step)) AS found
    FROM loss_steps
    HAVING count(*) > 0
),

rises AS (
    SELECT steps, unnest(found) AS s FROM series
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    l.step,
    s.baseline,
    s.highest,
    s.kind,
    steps[s.recovered] AS back_at,
    l.time, l.source, l.line,
    'loss=' || l.text AS text
FROM rises
INNER JOIN loss_steps AS l ON l.step = steps[s.place]
ORDER BY l.step
