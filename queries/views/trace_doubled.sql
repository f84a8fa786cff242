/*---
title = "Pairs of traces that claim one rank at the same time"
doc   = "Traces of different processes that state, or are given, the same rank and overlap in time; each pair once."
reads = ["trace_file"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
source = "VARCHAR"
pid = "BIGINT"
other = "VARCHAR"
other_pid = "BIGINT"
time = "BIGINT"
[[case]]
name = "two processes as rank 0"
given.trace_file = """
source | claimed | pid | start | end
a      | 0    | 7   | 100   | 200
b      | 0    | 8   | 150   | 250
c      | 1    | 9   | 100   | 200
"""
expect = """
rank | source | pid | other | other_pid | time
0    | a      | 7   | b     | 8         | 150
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
    a.run_id, a.claimed AS rank, a.source, a.pid, b.source AS other, b.pid AS other_pid,
    greatest(a."start", b."start") AS time
FROM trace_file AS a
INNER JOIN trace_file AS b
    ON
        b.run_id = a.run_id AND b.claimed = a.claimed AND b.source > a.source AND b.pid <> a.pid
        AND b."start" < a."end" AND a."start" < b."end"
ORDER BY a.run_id, a.claimed, a.source, b.source
