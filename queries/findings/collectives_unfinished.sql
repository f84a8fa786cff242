/*---
title    = "Collectives were open when the evidence was written"
doc      = "Ranks had operations open, but nothing says that the job hung: a dump written while the job ran, or at its end, looks the same."
severity = "note"
reads    = ["hang_state"]
summary  = "{operation} {seq} of group {group_name} was open when the dumps were written ({kind}); nothing else says that the job hung"
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
name = "open, and nobody complains"
given.hang_state = """
kind      | group_name | seq | operation  | ranks  | certain | text
transport | 0          | 7   | all_reduce | [0, 1] | false   | why
"""
expect = """
kind      | seq | text
transport | 7   | why
"""
[[case]]
name = "a certain hang is a fault, not a note"
given.hang_state = """
kind      | group_name | seq | operation  | ranks  | certain | explained | text
transport | 0          | 7   | all_reduce | [0, 1] | true    | false     | why
"""
expect = "kind | seq"
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
    text
FROM hang_state
WHERE NOT certain
ORDER BY kind, group_name, seq
