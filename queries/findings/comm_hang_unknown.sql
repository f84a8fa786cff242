/*---
title      = "Ranks wait, and there is no evidence of those they wait for"
doc        = "Ranks that left evidence wait for ranks that left none. Absence of evidence is no evidence: those ranks may hang, be dead, or their files may be missing here. Nobody is named. See view hang_state."
fault      = "comm_hang"
severity   = "fault"
weight     = 0
confidence = "low"
reads      = ["hang_state", "rank_progress"]
summary    = "{text}"
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
name = "a missing dump"
given.hang_state = """
kind | group_name | seq | operation | ranks | absent | certain | explained | text
unknown | 0 | 7 | all_reduce | [0, 1] | [2] | true | false | why
"""
given.rank_progress = """
rank | last_step
0    | 12
1    | 13
"""
expect = """
rank | seq | ranks  | step | text
     | 7   | [0, 1] | 13   | 2 ranks wait in all_reduce 7 of group 0 and others; undecided, since there is no evidence of rank 2
"""
[[case]]
name = "every rank left evidence, but not enough of it"
given.hang_state = """
kind | group_name | seq | operation | ranks | absent | certain | explained | text
unknown | c | 7 | all_reduce | [0, 1] | [] | true | false | why
"""
expect = """
seq | text
7   | why
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
unknown | 0 | 7 | all_reduce | [0, 1] | [] | false | false | why
unknown | 1 | 7 | all_reduce | [0, 1] | [] | true | true | a rank had failed by itself
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
    CASE
        WHEN len(h.absent) = 0 THEN h.text
        ELSE len(h.ranks) || ' ranks wait in ' || h.operation || ' ' || h.seq || ' of group ' || h.group_name || ' and others; undecided, since there is no evidence of rank ' || coalesce(nullif(array_to_string(h.absent[1:12], ', '), ''), '?') || CASE WHEN len(h.absent) > 12 THEN ' and ' || (len(h.absent) - 12) || ' more' ELSE '' END
    END AS text
FROM hang_state AS h
WHERE h.kind = 'unknown' AND h.certain AND NOT h.explained
ORDER BY h.group_name, h.seq
