/*---
title = "Memory of every rank by kind and step"
doc   = "The most that a rank reported of a kind of memory at a step, in bytes; kinds from profiler traces end in _in_trace, because the profiler sees only what was allocated while it was on."
materialize = true
reads = ["memory", "rank_map", "trace_memory_step"]
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
    v.run_id,
    coalesce(v.rank, m.rank) AS rank,
    v.kind,
    coalesce(v.step, v.after_step) AS step,
    max(v.bytes) AS bytes,
    arg_max(v.source, v.bytes) AS source,
    arg_max(v.line, v.bytes) AS line
FROM memory AS v
LEFT JOIN rank_map AS m
    ON
        v.run_id = m.run_id AND v.source = m.source AND v.local_rank IS NOT DISTINCT FROM m.local_rank
        AND v.task IS NOT DISTINCT FROM m.task AND v.host IS NOT DISTINCT FROM m.host
WHERE coalesce(v.step, v.after_step) IS NOT NULL
GROUP BY ALL
UNION ALL
SELECT
    run_id, rank,
    CASE device_type WHEN 0 THEN 'host_allocated_in_trace' ELSE 'device_allocated_in_trace' END AS kind,
    step,
    CAST(sum(allocated) AS BIGINT) AS bytes,
    min(source) AS source,
    NULL AS line
FROM trace_memory_step
WHERE allocated IS NOT NULL
GROUP BY ALL
ORDER BY run_id, rank, kind, step
