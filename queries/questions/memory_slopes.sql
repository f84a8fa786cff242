/*---
title = "Memory-growth slope per rank and kind"
doc   = "Bytes per step by least squares over the second half of the steps, beside the robust slope of the lower envelope with its interval and the word for it (growing, flat, undecided)."
reads = ["memory_series"]
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
expect = """
rank | kind     | steps | least_squares
0    | host_rss | 4     | 1048576
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

slopes AS (
    SELECT
        run_id, rank, kind, max(steps) AS steps,
        regr_slope(bytes, step) FILTER (WHERE place > steps / 2) AS least_squares,
        growth(list(CAST(bytes AS DOUBLE) ORDER BY step)) AS g,
        (max(step) - min(step)) / nullif(count(*) - 1, 0) AS stride
    FROM numbered
    GROUP BY run_id, rank, kind
)

SELECT
    run_id, rank, kind, steps, least_squares,
    g.slope / stride AS slope, g.low / stride AS low, g.high / stride AS high, g.kind AS word
FROM slopes
ORDER BY run_id, rank, kind
