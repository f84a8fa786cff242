/*---
title    = "Two traces claim one rank at the same time"
doc      = "Traces of different processes that state, or are given, the same rank and overlap in time: one of them is mislabelled or belongs to another run. Both are kept, and comparisons across ranks leave both out."
severity = "note"
reads    = ["trace_doubled"]
summary  = "rank {rank} has traces of {n} pairs of processes at the same time, for example {source} and {other}"
[returns]
rank = "INTEGER"
source = "VARCHAR"
other = "VARCHAR"
time = "BIGINT"
text = "VARCHAR"
[[case]]
name = "two processes as rank 0"
given.trace_doubled = """
rank | source | pid | other | other_pid | time
0    | a      | 7   | b     | 8         | 150
"""
expect = """
rank | source | other | time | text
0    | a      | b     | 150  | a (process 7) and b (process 8) both say rank 0
"""
[[case]]
name = "none"
expect = "rank | source | other"
---*/
SELECT
    rank, source, other, time,
    printf('%s (process %d) and %s (process %d) both say rank %d', source, pid, other, other_pid, rank) AS text
FROM trace_doubled
ORDER BY rank, source, other
