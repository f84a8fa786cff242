/*---
title = "GPU kernels by name"
doc   = "One row per rank and kernel (or GPU copy): how often it ran, how long, and how long after the end of the call that launched it it began. A negative delay shows that the clocks of host and device disagree."
reads = ["trace_activity", "trace_launch"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
name = "VARCHAR"
activity = "VARCHAR"
count = "BIGINT"
total = "BIGINT"
mean = "DOUBLE"
least = "BIGINT"
most = "BIGINT"
median_delay = "DOUBLE"
[[case]]
name = "two runs of one kernel"
given.trace_activity = """
source | rank | level | name | activity    | start_time | end_time | correlation
a      | 0    | 1     | gemm | gpu compute | 100        | 110      | 1
a      | 0    | 1     | gemm | gpu compute | 200        | 230      | 2
a      | 0    | 7     | op   | cpu operator | 0         | 300      |
"""
given.trace_launch = """
source | correlation | launched
a      | 1           | 90
"""
expect = """
rank | name | count | total | mean | least | most | median_delay
0    | gemm | 2     | 40    | 20   | 10    | 30   | 10
"""
---*/
SELECT
    a.run_id, a.source, a.rank, a.name, a.activity,
    count(*) AS count,
    CAST(sum(a.end_time - a.start_time) AS BIGINT) AS total,
    avg(a.end_time - a.start_time) AS mean,
    min(a.end_time - a.start_time) AS least,
    max(a.end_time - a.start_time) AS most,
    median(a.start_time - l.launched) AS median_delay
FROM trace_activity AS a
LEFT JOIN trace_launch AS l ON l.run_id = a.run_id AND l.source = a.source AND l.correlation = a.correlation
WHERE a.level <= 3
GROUP BY a.run_id, a.source, a.rank, a.name, a.activity
ORDER BY a.run_id, a.rank, a.source, total DESC, a.name
