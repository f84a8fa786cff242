/*---
title      = "Ranks wait for each other in a circle"
doc        = "Each of these ranks waits for another of them: process groups were entered in different order, or a rank among them is stuck in its own code while operations of its own are open. Nobody is named. See view hang_state."
fault      = "comm_hang"
severity   = "fault"
weight     = 1
confidence = "medium"
reads      = ["hang_state", "rank_progress"]
summary    = "ranks wait for each other in a circle: {text}"
[returns]
rank = "INTEGER"
group_name = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
ranks = "INTEGER[]"
absent = "INTEGER[]"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a circle"
given.hang_state = """
kind | group_name | seq | operation | ranks | absent | certain | explained | text
order | 0 | 7 | all_reduce | [0, 1] | [] | true | false | why
"""
given.rank_progress = """
rank | last_step
0    | 12
1    | 13
"""
expect = """
rank | seq | ranks  | step | text
     | 7   | [0, 1] | 13   | why
"""
[[case]]
name = "another kind of standstill"
given.hang_state = """
kind | group_name | seq | operation | ranks | absent | certain | text
other | 0 | 7 | all_reduce | [0, 1] | [] | true | why
"""
expect = "rank | seq"
[[case]]
name = "nothing says that the job hung"
given.hang_state = """
kind | group_name | seq | operation | ranks | absent | certain | explained | text
order | 0 | 7 | all_reduce | [0, 1] | [] | false | false | why
order | 1 | 7 | all_reduce | [0, 1] | [] | true | true | a rank had failed by itself
"""
expect = "rank | seq"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    h.group_name,
    h.seq,
    h.operation,
    h.ranks,
    h.absent,
    (SELECT min(last_step) + 1 FROM rank_progress WHERE rank IS NOT NULL) AS step,
    h.time,
    h.source,
    CAST(NULL AS BIGINT) AS line,
    h.text
FROM hang_state AS h
WHERE h.kind = 'order' AND h.certain AND NOT h.explained
ORDER BY h.group_name, h.seq
