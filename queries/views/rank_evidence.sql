/*---
title = "Which ranks left which evidence"
doc   = "One row per run and rank that exists: every rank up to the world size, and every rank that left anything."
materialize = true
keep  = true
reads = ["run_summary", "line", "metrics", "trace_file", "collective_evidence", "source"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
log = "BOOLEAN"
trace = "BOOLEAN"
dump = "BOOLEAN"
[[case]]
name = "a rank without anything has a row of its own"
given.run_summary = """
name | world_size
run  | 3
"""
given.metrics = """
rank | name
0    | loss
"""
given.trace_file = """
rank
1
"""
expect = """
rank | log   | trace | dump
0    | true  | false | false
1    | false | true  | false
2    | false | false | false
"""
---*/
WITH expected AS (
    SELECT name AS run_id, CAST(unnest(range(coalesce(world_size, 0))) AS INTEGER) AS rank FROM run_summary
),

logs AS (
    SELECT DISTINCT run_id, rank FROM metrics WHERE rank IS NOT NULL
    UNION
    SELECT DISTINCT run_id, rank FROM line WHERE rank IS NOT NULL
    UNION
    SELECT DISTINCT run_id, rank FROM source WHERE rank IS NOT NULL AND format = 'lines' AND rows > 0
),

traces AS (
    SELECT DISTINCT run_id, rank FROM trace_file WHERE rank IS NOT NULL
),

dumps AS (
    SELECT DISTINCT run_id, rank FROM collective_evidence WHERE origin = 'flight_recorder' AND rank IS NOT NULL
),

everyone AS (
    SELECT run_id, rank FROM expected
    UNION
    SELECT run_id, rank FROM logs
    UNION
    SELECT run_id, rank FROM traces
    UNION
    SELECT run_id, rank FROM dumps
)

SELECT
    e.run_id, e.rank,
    logs.rank IS NOT NULL AS log,
    traces.rank IS NOT NULL AS trace,
    dumps.rank IS NOT NULL AS dump
FROM everyone AS e
LEFT JOIN logs ON e.run_id = logs.run_id AND e.rank = logs.rank
LEFT JOIN traces ON e.run_id = traces.run_id AND e.rank = traces.rank
LEFT JOIN dumps ON e.run_id = dumps.run_id AND e.rank = dumps.rank
ORDER BY e.run_id, e.rank
