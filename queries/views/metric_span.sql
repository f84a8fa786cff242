/*---
title = "When and how far every file printed metrics"
doc   = "One row per file and attempt: the first and last stamp that states its year, the first step above 0 and the last one."
keep  = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
attempt = "INTEGER"
started = "BIGINT"
ended = "BIGINT"
first_step = "BIGINT"
last_step = "BIGINT"
[[case]]
name = "two attempts; a stamp of 1972 lacks its year"
given.metric = """
source | attempt | step | time
a      | 0       | 0    | 63072000000000000
a      | 0       | 3    | 1767225600000000000
a      | 0       | 9    | 1767225700000000000
a      | 1       |      |
"""
expect = """
source | attempt | started             | ended               | first_step | last_step
a      | 0       | 1767225600000000000 | 1767225700000000000 | 3          | 9
a      | 1       |                     |                     |            |
"""
---*/
SELECT
    run_id, source, attempt,
    min(time) FILTER (WHERE time > 94694400000000000) AS started,  -- 1973
    max(time) FILTER (WHERE time > 94694400000000000) AS ended,
    min(step) FILTER (WHERE step > 0) AS first_step,
    max(step) AS last_step
FROM metric
GROUP BY run_id, source, attempt
ORDER BY run_id, source, attempt
