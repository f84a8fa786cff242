/*---
title = "How long the job waited for each rank alone, per profiled step"
doc = """One row per rank: the time by which a step would have been shorter had the rank come to its collectives with the
last of the others. Middle and range of the middle 80 % over the profiled steps, and in how many of them it was last."""
reads = ["trace_blame"]
[returns]
rank = "INTEGER"
n = "BIGINT"
low = "DOUBLE"
median = "DOUBLE"
high = "DOUBLE"
times_last = "BIGINT"
[[case]]
name = "rank 1 holds the others up in two of three steps"
given.trace_blame = """
rank | step | caused   | times_last
0    | 1    | 0        | 0
0    | 2    | 0        | 0
0    | 3    | 2000000  | 1
1    | 1    | 40000000 | 2
1    | 2    | 50000000 | 1
1    | 3    | 0        | 0
"""
expect = """
rank | n | median | times_last
0    | 3 | 0      | 1
1    | 3 | 40     | 2
"""
---*/
SELECT
    rank,
    count(*) AS n,
    quantile_cont(caused / 1e6, 0.1) AS low,
    median(caused / 1e6) AS median,
    quantile_cont(caused / 1e6, 0.9) AS high,
    count(*) FILTER (WHERE times_last > 0) AS times_last
FROM trace_blame
GROUP BY rank
ORDER BY rank
