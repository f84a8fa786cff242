/*---
title    = "The loss rose far above its course"
severity = "note"
reads    = ["losses"]
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
given.losses = """
rank | step | loss | text | line
0    | 1    | 3.00 | 3.00 | 1
0    | 2    | 3.01 | 3.01 | 2
0    | 3    | 2.99 | 2.99 | 3
0    | 4    | 3.00 | 3.00 | 4
0    | 5    | 3.01 | 3.01 | 5
0    | 6    | 90   | 90   | 6
0    | 7    | 2.99 | 2.99 | 7
0    | 8    | 3.00 | 3.00 | 8
0    | 9    | 3.01 | 3.01 | 9
0    | 10   | 2.99 | 2.99 | 10
0    | 11   | 3.00 | 3.00 | 11
0    | 12   | 3.01 | 3.01 | 12
0    | 13   | 2.99 | 2.99 | 13
0    | 14   | 3.00 | 3.00 | 14
0    | 15   | 3.01 | 3.01 | 15
0    | 16   | 2.99 | 2.99 | 16
0    | 17   | 3.00 | 3.00 | 17
"""
expect = """
step | baseline | highest | kind
6    | 3        | 90      | recovered
"""
[[case]]
name = "a smooth curve"
given.losses = """
rank | step | loss | text | line
0    | 1    | 3.0  | 3.0  | 1
0    | 2    | 2.9  | 2.9  | 2
0    | 3    | 2.8  | 2.8  | 3
0    | 4    | 2.7  | 2.7  | 4
"""
expect = "step | baseline | highest | kind"
---*/
WITH job AS (
    SELECT
        step,
        median(loss) AS loss,
        arg_min(source, coalesce(rank, 0)) AS source,
        arg_min(line, coalesce(rank, 0)) AS line,
        arg_min(text, coalesce(rank, 0)) AS text,
        min(time) AS time
    FROM losses
    GROUP BY step
),

series AS (
    SELECT list(step ORDER BY step) AS steps, spikes(list(loss ORDER BY step)) AS found
    FROM job
    HAVING count(*) > 0
),

rises AS (
    SELECT steps, unnest(found) AS s FROM series
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    job.step,
    s.baseline,
    s.highest,
    s.kind,
    steps[s.recovered] AS back_at,
    job.time, job.source, job.line,
    'loss=' || job.text AS text
FROM rises
INNER JOIN job ON job.step = steps[s.place]
ORDER BY job.step
