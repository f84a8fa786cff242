/*---
title = "Why the GPU of each rank was idle"
doc = """
One row per rank and cause, over all streams together. A gap ends with an event; if the call that launched it began after
the gap did, the host was late; if it had been launched before, the GPU waited for something else (another stream, an
event, memory), or the gap is one of the short ones between kernels (up to 5 us). Without a launch in the trace the
cause is unknown.
"""
reads = ["trace_activity", "trace_launch"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
cause = "VARCHAR"
gaps = "BIGINT"
duration = "BIGINT"
[[case]]
name = "one gap of each kind"
given.trace_activity = """
source | rank | level | start_time | end_time | correlation
a      | 0    | 1     | 0          | 10000    | 1
a      | 0    | 1     | 12000      | 20000    | 2
a      | 0    | 1     | 50000      | 60000    | 3
a      | 0    | 2     | 90000      | 95000    | 4
a      | 0    | 3     | 140000     | 150000   | 5
"""
given.trace_launch = """
source | correlation | launch_time
a      | 2           | 5000
a      | 3           | 45000
a      | 4           | 30000
"""
expect = """
rank | cause           | gaps | duration
0    | unknown         | 1    | 45000
0    | host late       | 1    | 30000
0    | waiting         | 1    | 30000
0    | between kernels | 1    | 2000
"""
---*/
WITH gpu AS (
    SELECT
        run_id, source, rank, correlation, start_time,
        max(end_time) OVER (
            PARTITION BY run_id, source
            ORDER BY start_time, end_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS busy_until
    FROM trace_activity
    WHERE level <= 3
),

gap AS (
    SELECT
        g.run_id, g.source, g.rank, g.start_time - g.busy_until AS duration,
        CASE
            WHEN l.launch_time > g.busy_until THEN 'host late'
            WHEN g.start_time - g.busy_until <= 5000 THEN 'between kernels'
            WHEN l.launch_time IS NULL THEN 'unknown'
            ELSE 'waiting'
        END AS cause
    FROM gpu AS g
    LEFT JOIN trace_launch AS l ON l.run_id = g.run_id AND l.source = g.source AND l.correlation = g.correlation
    WHERE g.start_time > g.busy_until
)

SELECT run_id, source, rank, cause, count(*) AS gaps, CAST(sum(duration) AS BIGINT) AS duration
FROM gap
GROUP BY run_id, source, rank, cause
ORDER BY run_id, rank, source, duration DESC, cause
