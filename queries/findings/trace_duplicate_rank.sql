/*---
title    = "Two traces claim one rank at the same time"
doc      = "Traces of different processes that state, or are given, the same rank and overlap in time: one of them is mislabelled or belongs to another run. Both are kept, and comparisons across ranks leave both out."
severity = "note"
reads    = ["trace_file"]
summary  = "rank {rank} has traces of {n} pairs of processes at the same time, for example {source} and {other}"
[returns]
rank = "INTEGER"
source = "VARCHAR"
other = "VARCHAR"
time = "BIGINT"
text = "VARCHAR"
[[case]]
name = "two processes as rank 0"
given.trace_file = """
source | claimed | pid | start | end
a      | 0    | 7   | 100   | 200
b      | 0    | 8   | 150   | 250
c      | 1    | 9   | 100   | 200
"""
expect = """
rank | source | other
0    | a      | b
"""
[[case]]
name = "two windows of one process, and of one rank before and after a restart"
given.trace_file = """
source | claimed | pid | start | end
a      | 0    | 7   | 100   | 200
b      | 0    | 7   | 150   | 250
c      | 0    | 8   | 300   | 400
"""
expect = "rank | source | other"
---*/
SELECT
    a.claimed AS rank, a.source, b.source AS other,
    greatest(a."start", b."start") AS time,
    printf('%s (process %d) and %s (process %d) both say rank %d', a.source, a.pid, b.source, b.pid, a.claimed) AS text
FROM trace_file AS a
INNER JOIN trace_file AS b
    ON
        b.run_id = a.run_id AND b.claimed = a.claimed AND b.source > a.source AND b.pid <> a.pid
        AND b."start" < a."end" AND a."start" < b."end"
ORDER BY a.claimed, a.source, b.source
