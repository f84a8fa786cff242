/*---
title = "Memory of every rank by kind and step"
doc   = "The most that a rank reported of a kind of memory at a step, in bytes."
reads = ["memory"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
kind = "VARCHAR"
step = "BIGINT"
bytes = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the highest of a step counts; a record without a step belongs to the last one printed"
given.memory = """
rank | step | after_step | kind     | bytes | line
0    | 1    |            | host_rss | 100   | 1
0    |      | 1          | host_rss | 150   | 2
0    |      |            | host_rss | 999   | 3
"""
expect = """
rank | kind     | step | bytes | line
0    | host_rss | 1    | 150   | 2
"""
---*/
SELECT
    run_id, rank, kind,
    coalesce(step, after_step) AS step,
    max(bytes) AS bytes,
    arg_max(source, bytes) AS source,
    arg_max(line, bytes) AS line
FROM memory
WHERE coalesce(step, after_step) IS NOT NULL
GROUP BY ALL
ORDER BY run_id, rank, kind, step
