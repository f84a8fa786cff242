/*---
title = "How much longer than the fastest rank each rank took"
doc = """One row per rank, from the step times that the ranks printed, over about 2000 steps spread evenly. Ranks wait for
each other in collectives, so equal times clear no rank."""
reads = ["rank_lateness"]
instead_of = "lateness"
[returns]
rank = "INTEGER"
n = "BIGINT"
low = "DOUBLE"
median = "DOUBLE"
high = "DOUBLE"
times_last = "BIGINT"
[[case]]
name = "in the order of the ranks"
given.rank_lateness = """
rank | n | low | median | high | times_last
1    | 2 | 190 | 200    | 210  | 2
0    | 2 | 0   | 0      | 0    | 0
"""
expect = """
rank | n | low | median | high | times_last
0    | 2 | 0   | 0      | 0    | 0
1    | 2 | 190 | 200    | 210  | 2
"""
---*/
SELECT rank, n, low, median, high, times_last
FROM rank_lateness
ORDER BY rank
