/*---
title    = "Memory grows with every step"
doc      = "Ranks whose memory of one kind keeps growing to the end of the run, by the slope of its lower envelope; a warm-up, a plateau, a saw tooth or a single step is not growth. Reserved memory alone is no evidence: a caching allocator keeps what it once needed."
fault    = "oom"
kind     = "state"
severity = "fault"
reads    = ["memory_series"]
summary  = "{what} grows by {bytes_per_step} B per step ({n} series of ranks and kinds)"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
what = "VARCHAR"
bytes_per_step = "DOUBLE"
low = "DOUBLE"
high = "DOUBLE"
rise = "DOUBLE"
steps = "BIGINT"
step = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "rank 1 gains 1 MiB a step, rank 0 nothing"
given.memory_series = """
rank | kind     | step | bytes
0    | host_rss | 1    | 400000000
0    | host_rss | 2    | 400000000
0    | host_rss | 3    | 400000000
0    | host_rss | 4    | 400000000
0    | host_rss | 5    | 400000000
0    | host_rss | 6    | 400000000
0    | host_rss | 7    | 400000000
0    | host_rss | 8    | 400000000
0    | host_rss | 9    | 400000000
0    | host_rss | 10   | 400000000
0    | host_rss | 11   | 400000000
0    | host_rss | 12   | 400000000
0    | host_rss | 13   | 400000000
0    | host_rss | 14   | 400000000
0    | host_rss | 15   | 400000000
0    | host_rss | 16   | 400000000
0    | host_rss | 17   | 400000000
0    | host_rss | 18   | 400000000
0    | host_rss | 19   | 400000000
0    | host_rss | 20   | 400000000
1    | host_rss | 1    | 401048576
1    | host_rss | 2    | 402097152
1    | host_rss | 3    | 403145728
1    | host_rss | 4    | 404194304
1    | host_rss | 5    | 405242880
1    | host_rss | 6    | 406291456
1    | host_rss | 7    | 407340032
1    | host_rss | 8    | 408388608
1    | host_rss | 9    | 409437184
1    | host_rss | 10   | 410485760
1    | host_rss | 11   | 411534336
1    | host_rss | 12   | 412582912
1    | host_rss | 13   | 413631488
1    | host_rss | 14   | 414680064
1    | host_rss | 15   | 415728640
1    | host_rss | 16   | 416777216
1    | host_rss | 17   | 417825792
1    | host_rss | 18   | 418874368
1    | host_rss | 19   | 419922944
1    | host_rss | 20   | 420971520
"""
expect = """
rank | culprit | what     | bytes_per_step
1    | true    | host_rss | 1048576
"""
[[case]]
name = "flat"
given.memory_series = """
rank | kind     | step | bytes
0    | host_rss | 1    | 400000000
0    | host_rss | 2    | 400000000
"""
expect = "rank | culprit | what | bytes_per_step"
---*/
WITH series AS (
    SELECT
        rank, kind,
        growth(list(CAST(bytes AS DOUBLE) ORDER BY step)) AS g,
        (max(step) - min(step)) / nullif(count(*) - 1, 0) AS stride,
        count(*) AS steps,
        arg_max(source, step) AS source,
        arg_max(line, step) AS line
    FROM memory_series
    WHERE kind NOT IN ('device_reserved', 'device_max_reserved', 'device_total', 'host_used', 'device_used')
    GROUP BY rank, kind
    HAVING count(*) > 1
),

everybody AS (
    SELECT kind, count(*) AS ranks, count(*) FILTER (WHERE g.kind = 'growing') AS growing
    FROM series
    GROUP BY kind
)

-- Where every rank grows alike, none of them is the culprit.
SELECT
    s.rank,
    e.growing < e.ranks AS culprit,
    s.kind AS what,
    g.slope / s.stride AS bytes_per_step,
    g.low / s.stride AS low,
    g.high / s.stride AS high,
    g.rise,
    s.steps,
    CAST(NULL AS BIGINT) AS step,
    s.source, s.line,
    printf('%s of rank %s: %+.0f B per step over %d steps', s.kind, coalesce(CAST(s.rank AS VARCHAR), '?'), g.slope / s.stride, s.steps)
        AS text
FROM series AS s
INNER JOIN everybody AS e ON s.kind = e.kind
WHERE g.kind = 'growing'
ORDER BY bytes_per_step DESC, s.rank
