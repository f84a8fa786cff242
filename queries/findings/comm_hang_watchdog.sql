/*---
title      = "Ranks gave up waiting for others, and no record tells who was missing"
doc        = "A watchdog's timeout is a hang, also where one rank alone speaks of its group. PyTorch up to 2.1 does not even name the group (ProcessGroupNCCL.cpp), and numbers of different groups cannot be compared. A timeout of gloo or of monitoredBarrier names no operation at all. So the hang is stated and nobody is named; where the records of several ranks can be compared, the other findings judge it."
fault      = "comm_hang"
severity   = "fault"
weight     = 0
confidence = "low"
reads      = ["collective_evidence", "events", "rank_progress", "hang_suspect", "hang_state"]
summary    = "{text}; undecided who was missing, since no other record of its group can be compared"
[returns]
rank = "INTEGER"
ranks_waiting = "BIGINT"
operation = "VARCHAR"
seq = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "three of four ranks time out"
given.rank_progress = """
rank | last_step
0    | 20
"""
given.collective_evidence = """
rank | statement | origin   | pending | operation | seq | time | source | line
0    | entry     | watchdog | true    | ALLREDUCE | 68  | 200  | log    | 7
1    | entry     | watchdog | true    | ALLREDUCE | 68  | 100  | log    | 8
3    | entry     | watchdog | true    | ALLREDUCE | 68  | 300  | log    | 9
"""
expect = """
rank | ranks_waiting | operation | seq | step | time | source | line
     | 3             | ALLREDUCE | 68  | 21   | 100  | log    | 8
"""
[[case]]
name = "one rank alone speaks of a group"
given.collective_evidence = """
rank | statement | origin   | pending | operation | seq | group_name | line
0    | entry     | watchdog | true    | ALLREDUCE | 68  | 1          | 7
0    | status    | watchdog |         |           |     | 1          | 8
"""
expect = """
ranks_waiting | seq | text
1             | 68  | 1 rank timed out, the first in ALLREDUCE 68
"""
[[case]]
name = "ranks that can be compared are the matter of the other findings"
given.collective_evidence = """
rank | statement | origin   | pending | operation | seq | group_name
0    | entry     | watchdog | true    | ALLREDUCE | 68  | 1
1    | entry     | watchdog | true    | ALLREDUCE | 68  | 1
"""
given.hang_state = """
kind      | seq
transport | 68
"""
expect = "rank | ranks_waiting | operation"
[[case]]
name = "gloo ran out of time on two ranks"
given.rank_progress = """
rank | last_step
0    | 20
"""
given.events = """
kind     | name         | rank | time | source | line
watchdog | gloo_timeout | 0    | 200  | log    | 7
watchdog | gloo_timeout | 2    | 210  | log    | 8
"""
expect = """
rank | ranks_waiting | operation | seq | step | time | source | line | text
     | 2             | gloo      |     | 21   | 200  | log    | 7    | 2 ranks timed out, the first in gloo
"""
---*/
WITH told AS (
    SELECT rank, operation, seq, time, source, line
    FROM collective_evidence
    WHERE origin = 'watchdog' AND statement = 'entry' AND pending
    UNION ALL
    SELECT
        rank,
        CASE name WHEN 'gloo_timeout' THEN 'gloo' ELSE 'monitoredBarrier' END AS operation,
        CAST(NULL AS BIGINT) AS seq, time, source, line
    FROM events
    WHERE
        name IN ('gloo_timeout', 'monitored_barrier')
        AND NOT EXISTS (SELECT 1 FROM events AS m WHERE m.kind IN ('mismatch', 'barrier_missing', 'desync'))
),

given_up AS (
    SELECT
        count(DISTINCT rank) AS ranks_waiting,
        arg_min(operation, coalesce(time, line)) AS operation,
        arg_min(seq, coalesce(time, line)) AS seq,
        min(time) AS time,
        arg_min(source, coalesce(time, line)) AS source,
        arg_min(line, coalesce(time, line)) AS line
    FROM told
    WHERE
        NOT EXISTS (SELECT 1 FROM hang_suspect)
        AND NOT EXISTS (SELECT 1 FROM hang_state)
    HAVING count(*) > 0
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    ranks_waiting, operation, seq,
    (SELECT min(last_step) + 1 FROM rank_progress WHERE rank IS NOT NULL) AS step,
    time, source, line,
    printf('%d %s timed out, the first in %s', ranks_waiting, CASE ranks_waiting WHEN 1 THEN 'rank' ELSE 'ranks' END, operation)
    || coalesce(' ' || seq, '') AS text
FROM given_up
