/*---
title    = "Memory grows with every step"
doc      = "Ranks whose memory of one kind keeps growing to the end of the run, by the slope of its lower envelope; a warm-up, a plateau, a saw tooth or a single step is not growth. Reserved memory alone is no evidence: a caching allocator keeps what it once needed."
fault    = "oom"
kind     = "state"
severity = "fault"
reads    = ["memory_slope"]
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
name = "rank 1 gains 1 MiB a step, rank 0 nothing; reserved memory alone is no evidence"
given.memory_slope = """
rank | kind            | word    | slope   | steps
0    | host_rss        | flat    | 0       | 20
1    | host_rss        | growing | 1048576 | 20
1    | device_reserved | growing | 1048576 | 20
"""
expect = """
rank | culprit | what     | bytes_per_step
1    | true    | host_rss | 1048576
"""
[[case]]
name = "both ranks grow: none of them is the culprit"
given.memory_slope = """
rank | kind     | word    | slope | steps
0    | host_rss | growing | 2     | 20
1    | host_rss | growing | 3     | 20
"""
expect = """
rank | culprit | bytes_per_step
1    | false   | 3
0    | false   | 2
"""
[[case]]
name = "flat"
given.memory_slope = """
rank | kind     | word | slope | steps
0    | host_rss | flat | 0     | 2
"""
expect = "rank | culprit | what | bytes_per_step"
---*/
WITH series AS (
    SELECT rank, kind, word, slope, low, high, rise, steps, source, line
    FROM memory_slope
    WHERE kind NOT IN ('device_reserved', 'device_max_reserved', 'device_total', 'host_used', 'device_used')
),

everybody AS (
    SELECT kind, count(*) AS ranks, count(*) FILTER (WHERE word = 'growing') AS growing
    FROM series
    GROUP BY kind
)

-- Where every rank grows alike, none of them is the culprit.
SELECT
    s.rank,
    e.growing < e.ranks AS culprit,
    s.kind AS what,
    s.slope AS bytes_per_step,
    s.low, s.high, s.rise, s.steps,
    CAST(NULL AS BIGINT) AS step,
    s.source, s.line,
    printf('%s of rank %s: %+.0f B per step over %d steps', s.kind, coalesce(CAST(s.rank AS VARCHAR), '?'), s.slope, s.steps) AS text
FROM series AS s
INNER JOIN everybody AS e ON s.kind = e.kind
WHERE s.word = 'growing'
ORDER BY bytes_per_step DESC, s.rank
