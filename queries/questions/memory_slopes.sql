/*---
title = "Memory-growth slope per rank and kind"
doc   = "Bytes per step by least squares over the second half of the steps, beside the robust slope of the lower envelope with its interval and the word for it (growing, flat, undecided)."
reads = ["memory_series", "memory_slope"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
kind = "VARCHAR"
steps = "BIGINT"
least_squares = "DOUBLE"
slope = "DOUBLE"
low = "DOUBLE"
high = "DOUBLE"
word = "VARCHAR"
[[case]]
name = "one MiB a step"
given.memory_series = """
rank | kind     | step | bytes
0    | host_rss | 1    | 1048576
0    | host_rss | 2    | 2097152
0    | host_rss | 3    | 3145728
0    | host_rss | 4    | 4194304
"""
given.memory_slope = """
rank | kind     | steps | slope   | word
0    | host_rss | 4     | 1000000 | undecided
"""
expect = """
rank | kind     | steps | least_squares | slope   | word
0    | host_rss | 4     | 1048576       | 1000000 | undecided
"""
---*/
WITH numbered AS (
    SELECT
        run_id, rank, kind, step, bytes,
        row_number() OVER same AS place,
        count(*) OVER (PARTITION BY run_id, rank, kind) AS steps
    FROM memory_series
    WINDOW same AS (PARTITION BY run_id, rank, kind ORDER BY step)
),

fitted AS (
    SELECT run_id, rank, kind, max(steps) AS steps, regr_slope(bytes, step) FILTER (WHERE place > steps / 2) AS least_squares
    FROM numbered
    GROUP BY run_id, rank, kind
)

SELECT f.run_id, f.rank, f.kind, f.steps, f.least_squares, s.slope, s.low, s.high, s.word
FROM fitted AS f
LEFT JOIN memory_slope AS s ON f.run_id = s.run_id AND f.rank IS NOT DISTINCT FROM s.rank AND f.kind = s.kind
ORDER BY f.run_id, f.rank, f.kind
