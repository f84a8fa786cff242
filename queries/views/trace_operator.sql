/*---
title = "Operators on the CPU by name, with the time that is their own"
doc   = "One row per rank and operator: calls, total time, and own time, which is the total less the operators called directly within on the same thread."
reads = ["trace_event", "trace_file"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
name = "VARCHAR"
count = "BIGINT"
total = "BIGINT"
own = "BIGINT"
[[case]]
name = "linear calls addmm"
given.trace_file = """
source | rank
a      | 0
"""
given.trace_event = """
source | rank | ordinal | ph | cat    | name         | tid | ts  | dur
a      | 0    | 0       | X  | cpu_op | aten::linear | 1   | 100 | 50
a      | 0    | 1       | X  | cpu_op | aten::addmm  | 1   | 100 | 30
a      | 0    | 2       | X  | cpu_op | aten::copy_  | 1   | 105 | 10
a      | 0    | 3       | X  | cpu_op | aten::relu   | 1   | 150 | 10
a      | 0    | 4       | X  | cpu_op | aten::relu   | 2   | 100 | 40
"""
expect = """
rank | name         | count | total | own
0    | aten::linear | 1     | 50    | 20
0    | aten::relu   | 2     | 50    | 50
0    | aten::addmm  | 1     | 30    | 20
0    | aten::copy_  | 1     | 10    | 10
"""
---*/
WITH op AS (
    SELECT run_id, source, tid, name, ts AS start_time, ts + dur AS end_time, ordinal, dur
    FROM trace_event
    WHERE ph = 'X' AND cat = 'cpu_op' AND ts IS NOT NULL AND dur IS NOT NULL AND name NOT LIKE 'ProfilerStep#%'
),

edge AS (
    SELECT run_id, source, tid, start_time AS moment, 1 AS change, -dur AS inner_first, ordinal FROM op
    UNION ALL
    SELECT run_id, source, tid, end_time AS moment, -1 AS change, dur AS inner_first, ordinal FROM op WHERE dur > 0
    UNION ALL
    SELECT run_id, source, tid, end_time AS moment, -1 AS change, 0.5 AS inner_first, ordinal FROM op WHERE dur = 0
),

-- Ends come before starts of the same moment; an operator without duration ends after it starts.
deep AS (
    SELECT
        run_id, source, tid, ordinal, change,
        sum(change) OVER (
            PARTITION BY run_id, source, tid
            ORDER BY moment, CASE WHEN change < 0 AND inner_first <> 0.5 THEN 0 ELSE 1 END, inner_first, ordinal
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS depth
    FROM edge
),

placed AS (
    SELECT
        o.run_id, o.source, o.tid, o.name, o.start_time, o.end_time, o.ordinal, o.dur,
        CAST(d.depth AS BIGINT) AS depth
    FROM op AS o
    INNER JOIN deep AS d
        ON d.run_id = o.run_id AND d.source = o.source AND d.tid = o.tid AND d.ordinal = o.ordinal AND d.change = 1
),

child AS (
    SELECT c.run_id, c.source, p.ordinal, sum(c.dur) AS called
    FROM placed AS c
    ASOF INNER JOIN (
        SELECT run_id, source, tid, depth + 1 AS depth, start_time, ordinal FROM placed
    ) AS p
        ON
            p.run_id = c.run_id AND p.source = c.source AND p.tid = c.tid AND p.depth = c.depth
            AND p.start_time <= c.start_time
    GROUP BY c.run_id, c.source, p.ordinal
)

SELECT
    o.run_id, o.source, t.rank, o.name,
    count(*) AS count,
    CAST(sum(o.dur) AS BIGINT) AS total,
    CAST(sum(greatest(o.dur - coalesce(c.called, 0), 0)) AS BIGINT) AS own
FROM placed AS o
LEFT JOIN child AS c ON c.run_id = o.run_id AND c.source = o.source AND c.ordinal = o.ordinal
LEFT JOIN trace_file AS t ON t.run_id = o.run_id AND t.source = o.source
GROUP BY o.run_id, o.source, t.rank, o.name
ORDER BY o.run_id, t.rank, o.source, total DESC, o.name
