/*---
title = "Memory growth per rank and kind in two runs"
doc   = "Slope of the lower envelope in bytes per step with its interval, and the word for it: growing, flat or undecided."
reads = ["memory_series"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
rank = "INTEGER"
kind = "VARCHAR"
before_kind = "VARCHAR"
before_slope = "DOUBLE"
before_low = "DOUBLE"
before_high = "DOUBLE"
before_steps = "BIGINT"
after_kind = "VARCHAR"
after_slope = "DOUBLE"
after_low = "DOUBLE"
after_high = "DOUBLE"
after_steps = "BIGINT"
[[case]]
name = "memory of the before-run only"
given.memory_series = """
run_id | rank | kind     | step | bytes
before | 0    | host_rss | 1    | 100
before | 0    | host_rss | 2    | 100
"""
expect = """
rank | kind     | before_steps | after_kind | after_steps
0    | host_rss | 2            |            |
"""
---*/
WITH series AS (
    SELECT
        run_id, rank, kind,
        growth(list(CAST(bytes AS DOUBLE) ORDER BY step)) AS g,
        (max(step) - min(step)) / (count(*) - 1) AS stride,
        count(*) AS steps
    FROM memory_series
    WHERE run_id IN ($before, $after)
    GROUP BY run_id, rank, kind
    HAVING count(*) > 1
),

slopes AS (
    SELECT run_id, rank, kind, g.kind AS word, g.slope / stride AS slope, g.low / stride AS low, g.high / stride AS high, steps
    FROM series
)

SELECT
    coalesce(a.rank, b.rank) AS rank,
    coalesce(a.kind, b.kind) AS kind,
    a.word AS before_kind, a.slope AS before_slope, a.low AS before_low, a.high AS before_high, a.steps AS before_steps,
    b.word AS after_kind, b.slope AS after_slope, b.low AS after_low, b.high AS after_high, b.steps AS after_steps
FROM (SELECT run_id, rank, kind, word, slope, low, high, steps FROM slopes WHERE run_id = $before) AS a
FULL JOIN (SELECT run_id, rank, kind, word, slope, low, high, steps FROM slopes WHERE run_id = $after) AS b
    ON a.rank IS NOT DISTINCT FROM b.rank AND a.kind = b.kind
ORDER BY kind, rank
