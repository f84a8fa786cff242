/*---
title = "The oldest operation that each rank has not finished"
doc   = "record is null where only counters are known; then the group that the rank has open, if it is only one."
reads = ["open_operation", "open_transfer"]
materialize = true
[returns]
rank = "INTEGER"
pending = "BIGINT"
record = "BIGINT"
group_key = "VARCHAR"
seq = "BIGINT"
transfer = "BOOLEAN"
[[case]]
name = "the lowest record of all groups"
given.open_operation = """
group_key | seq | rank | pending | record
a         | 5   | 0    | true    | 30
b         | 9   | 0    | true    | 20
b         | 9   | 1    | false   | 2
"""
given.open_transfer = """
group_key | rank | partner | operation | seq | open | record
p         | 2    | 0       | send      | 4   | 1    | 7
"""
expect = """
rank | pending | record | group_key | seq | transfer
0    | 2       | 20     | b         | 9   | false
2    | 1       | 7      | p         | 4   | true
"""
---*/
WITH open_ AS (
    SELECT rank, record, group_key, seq, FALSE AS transfer
    FROM open_operation
    WHERE pending
    UNION ALL
    SELECT rank, record, group_key, seq, TRUE AS transfer
    FROM open_transfer
)

SELECT
    rank,
    count(*) AS pending,
    min(record) AS record,
    CASE
        WHEN min(record) IS NOT NULL THEN arg_min(group_key, record)
        WHEN count(DISTINCT group_key) = 1 THEN min(group_key)
    END AS group_key,
    CASE
        WHEN min(record) IS NOT NULL THEN arg_min(seq, record)
        WHEN count(DISTINCT group_key) = 1 THEN min(seq)
    END AS seq,
    coalesce(arg_min(transfer, record), FALSE) AS transfer
FROM open_
GROUP BY rank
ORDER BY rank
