/*---
title      = "Ranks waited for a rank that had failed"
doc        = "Collectives did not end, but a rank had raised an error of its own before the others began to wait: the hang is its consequence."
fault      = "comm_hang"
severity   = "warning"
confidence = "medium"
reads      = ["hang_state"]
summary    = "{text}"
[returns]
rank = "INTEGER"
kind = "VARCHAR"
group_name = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a failure before"
given.hang_state = """
kind    | group_name | seq | operation  | ranks  | certain | explained
unknown | 0          | 7   | all_reduce | [0, 1] | true    | true
"""
expect = """
seq | text
7   | 2 ranks waited in all_reduce 7 of group 0 after another rank had failed by itself
"""
[[case]]
name = "none"
given.hang_state = """
kind    | group_name | seq | operation  | ranks  | certain | explained
unknown | 0          | 7   | all_reduce | [0, 1] | true    | false
"""
expect = "seq"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    kind,
    group_name,
    seq,
    operation,
    time,
    source,
    CAST(NULL AS BIGINT) AS line,
    len(ranks) || ' ranks waited in ' || operation || ' ' || seq || ' of group ' || group_name
    || ' after another rank had failed by itself' AS text
FROM hang_state
WHERE certain AND explained
ORDER BY kind, group_name, seq
