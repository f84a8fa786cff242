/*---
title = "How busy the GPU of each rank was, over the whole trace"
doc = """
One row per trace with GPU work. `span` runs from the first to the last GPU event; compute, communication and copies are
unions of intervals; `idle` is what no event covers; `exposed_communication` is communication outside computing, and
`exposed_memcpy` copies outside both, so compute + exposed_communication + exposed_memcpy + idle = span. `overlap` is the
share (%) of communication that runs beside computing. Definitions of HolisticTraceAnalysis (breakdown_analysis.py,
communication_analysis.py), which also drops the last profiled step by default where there are several.
"""
reads = ["trace_activity"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
span = "BIGINT"
compute = "BIGINT"
communication = "BIGINT"
memcpy = "BIGINT"
exposed_communication = "BIGINT"
exposed_memcpy = "BIGINT"
idle = "BIGINT"
overlap = "DOUBLE"
[[case]]
name = "compute 100-140, communication 130-170, copy 190-200"
given.trace_activity = """
source | rank | level | start_time | end_time
a      | 0    | 1     | 100        | 130
a      | 0    | 1     | 120        | 140
a      | 0    | 2     | 130        | 170
a      | 0    | 3     | 190        | 200
a      | 0    | 7     | 0          | 500
"""
expect = """
rank | span | compute | communication | memcpy | exposed_communication | exposed_memcpy | idle | overlap
0    | 100  | 40      | 40            | 10   | 30                    | 10           | 20   | 25
"""
---*/
WITH gpu AS (
    SELECT run_id, source, rank, level, start_time, end_time FROM trace_activity WHERE level <= 3
),

chosen AS (
    SELECT g.run_id, g.source, g.rank, s.name, g.start_time, g.end_time
    FROM gpu AS g
    INNER JOIN (
        VALUES
        ('compute', 1), ('communication', 2), ('memcpy', 3),
        ('both', 1), ('both', 2), ('all', 1), ('all', 2), ('all', 3)
    ) AS s (name, level) ON s.level = g.level
),

reached AS (
    SELECT
        run_id, source, rank, name, start_time, end_time,
        max(end_time) OVER (
            PARTITION BY run_id, source, name
            ORDER BY start_time, end_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before
    FROM chosen
),

covered AS (
    SELECT
        run_id, source, rank, name,
        max(end_time) - min(start_time) AS span,
        CAST(sum(greatest(end_time - greatest(start_time, coalesce(before, start_time)), 0)) AS BIGINT) AS duration
    FROM reached
    GROUP BY run_id, source, rank, name
),

wide AS (
    SELECT
        run_id, source, rank,
        max(span) AS span,
        coalesce(max(duration) FILTER (WHERE name = 'compute'), 0) AS compute,
        coalesce(max(duration) FILTER (WHERE name = 'communication'), 0) AS communication,
        coalesce(max(duration) FILTER (WHERE name = 'memcpy'), 0) AS memcpy,
        coalesce(max(duration) FILTER (WHERE name = 'both'), 0) AS "both",
        max(duration) FILTER (WHERE name = 'all') AS busy
    FROM covered
    GROUP BY run_id, source, rank
)

SELECT
    run_id, source, rank, span, compute, communication, memcpy,
    "both" - compute AS exposed_communication,
    busy - "both" AS exposed_memcpy,
    span - busy AS idle,
    CASE WHEN communication > 0 THEN 100.0 * (compute + communication - "both") / communication END AS overlap
FROM wide
ORDER BY run_id, rank, source
