/*---
title      = "A watchdog gave up on a collective of a group that it does not name"
doc        = "PyTorch up to 2.1 writes the rank and the number of the collective, but not the process group (ProcessGroupNCCL.cpp). Numbers of different groups cannot be compared, so a hang is stated and nobody is named; where any record names a group, the other findings judge it."
fault      = "comm_hang"
severity   = "fault"
weight     = 0
confidence = "low"
reads      = ["collective_evidence", "rank_progress"]
summary    = "{ranks_waiting} ranks timed out, the first in {operation} {seq}; undecided who kept them waiting, since the process group is not named"
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
name = "a group with a name is the matter of the other findings"
given.collective_evidence = """
rank | statement | origin   | pending | operation | seq | group_name
0    | entry     | watchdog | true    | ALLREDUCE | 68  |
0    | status    | watchdog |         |           | 68  | 1
"""
expect = "rank | ranks_waiting | operation"
---*/
WITH given_up AS (
    SELECT
        count(DISTINCT rank) AS ranks_waiting,
        arg_min(operation, coalesce(time, line)) AS operation,
        arg_min(seq, coalesce(time, line)) AS seq,
        min(time) AS time,
        arg_min(source, coalesce(time, line)) AS source,
        arg_min(line, coalesce(time, line)) AS line
    FROM collective_evidence
    WHERE
        NOT EXISTS (SELECT 1 FROM collective_evidence AS named WHERE named.group_name IS NOT NULL)
        AND origin = 'watchdog' AND statement = 'entry' AND pending AND group_name IS NULL
    HAVING count(*) > 0
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    ranks_waiting, operation, seq,
    (SELECT min(last_step) + 1 FROM rank_progress WHERE rank IS NOT NULL) AS step,
    time, source, line,
    printf('%d ranks timed out, the first in %s %d', ranks_waiting, operation, seq) AS text
FROM given_up
