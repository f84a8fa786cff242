/*---
title = "Numbers that two runs of the same job print alike"
doc   = "Losses, gradient norms, learning rates and loss scales per run, rank and step, as printed; the last print of a step counts. Times, rates and memory are left out: they differ between any two runs."
reads = ["metric"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
name = "VARCHAR"
value = "DOUBLE"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the last print counts, and a step time does not"
given.metric = """
rank | step | name      | value | text | line
0    | 1    | loss      | 3     | 3.0  | 1
0    | 1    | loss      | 2     | 2.0  | 2
0    | 1    | step_time | 1     | 1    | 2
"""
expect = """
rank | step | name | text
0    | 1    | loss | 2.0
"""
---*/
SELECT
    run_id, rank, step, name,
    last(value ORDER BY coalesce(attempt, 0), source, line) AS value,
    last(text ORDER BY coalesce(attempt, 0), source, line) AS text,
    last(source ORDER BY coalesce(attempt, 0), source, line) AS source,
    last(line ORDER BY coalesce(attempt, 0), source, line) AS line
FROM metric
WHERE
    step IS NOT NULL AND text IS NOT NULL
    AND regexp_matches(lower(name), 'loss|grad_norm|perplexity|^lr$|learning_rate')
    AND NOT regexp_matches(lower(name), 'time|second|eval|valid|test')
GROUP BY run_id, rank, step, name
