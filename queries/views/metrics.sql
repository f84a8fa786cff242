/*---
title = "Metrics with the global rank resolved"
doc   = "Every printed value; where its line states no global rank, the one of its file, local rank, host or label. Values of an earlier attempt that a later one printed again stay apart by attempt."
reads = ["metric", "rank_map"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
rank = "INTEGER"
attempt = "INTEGER"
step = "BIGINT"
samples = "BIGINT"
name = "VARCHAR"
value = "DOUBLE"
text = "VARCHAR"
[[case]]
name = "a local rank that is known to be rank 5"
given.rank_map = """
source | local_rank | rank
a      | 1          | 5
"""
given.metric = """
source | local_rank | rank | step | name | value
a      | 1          |      | 3    | loss | 2
a      |            | 0    | 3    | loss | 2
b      | 1          |      | 3    | loss | 2
"""
expect = """
source | rank | step | name | value
a      | 0    | 3    | loss | 2
a      | 5    | 3    | loss | 2
b      |      | 3    | loss | 2
"""
---*/
-- Only what states no rank is looked up: to join every row takes longer than to read it.
SELECT
    run_id, source, line, time, rank, attempt, step, samples,
    name, value, text
FROM metric
WHERE rank IS NOT NULL
UNION ALL
SELECT
    v.run_id, v.source, v.line, v.time, m.rank, v.attempt, v.step, v.samples,
    v.name, v.value, v.text
FROM metric AS v
LEFT JOIN rank_map AS m
    ON
        v.run_id = m.run_id AND v.source = m.source AND v.local_rank IS NOT DISTINCT FROM m.local_rank
        AND v.task IS NOT DISTINCT FROM m.task AND v.host IS NOT DISTINCT FROM m.host
WHERE v.rank IS NULL
