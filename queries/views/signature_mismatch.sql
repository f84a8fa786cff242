/*---
title = "Unfinished collectives on which the ranks of a group do not agree"
doc   = """
The first such number per group, one row per rank that entered it. `odd` marks ranks whose signature is not that of
the majority of the whole group, members without evidence counted against it; null where there is no majority."""
reads = ["open_operation", "group_member"]
materialize = true
[returns]
group_key = "VARCHAR"
seq = "BIGINT"
rank = "INTEGER"
operation = "VARCHAR"
signature = "VARCHAR"
usual = "VARCHAR"
odd = "BOOLEAN"
[[case]]
name = "one of four differs"
given.open_operation = """
group_key | seq | rank | pending | operation  | signature
a         | 6   | 0    | true    | all_reduce | all_reduce Float in 4 out 4
a         | 6   | 1    | true    | all_reduce | all_reduce Float in 4 out 4
a         | 6   | 2    | true    | broadcast  | broadcast Float in 4 out 4
a         | 6   | 3    | false   | all_reduce | all_reduce Float in 4 out 4
"""
given.group_member = """
group_key | rank | size
a         | 0    | 4
a         | 1    | 4
a         | 2    | 4
a         | 3    | 4
"""
expect = """
group_key | seq | rank | odd
a         | 6   | 0    | false
a         | 6   | 1    | false
a         | 6   | 2    | true
a         | 6   | 3    | false
"""
[[case]]
name = "two dumps of four ranks are no majority, and equal ones no mismatch"
given.open_operation = """
group_key | seq | rank | pending | operation  | signature
a         | 6   | 0    | true    | all_reduce | all_reduce Float in 4 out 4
a         | 6   | 2    | true    | all_reduce | all_reduce Half in 4 out 4
b         | 6   | 0    | true    | all_reduce | all_reduce Half in 4 out 4
b         | 6   | 2    | true    | all_reduce | all_reduce Half in 4 out 4
"""
given.group_member = """
group_key | rank | size
a         | 0    | 4
a         | 2    | 4
b         | 0    | 4
b         | 2    | 4
"""
expect = """
group_key | seq | rank | odd
a         | 6   | 0    |
a         | 6   | 2    |
"""
---*/
WITH signed AS (
    SELECT group_key, seq, rank, operation, signature
    FROM open_operation
    WHERE signature IS NOT NULL
),

torn AS (
    SELECT s.group_key, min(s.seq) AS seq
    FROM (
        SELECT group_key, seq
        FROM signed
        GROUP BY group_key, seq
        HAVING count(DISTINCT signature) > 1
    ) AS s
    SEMI JOIN open_operation AS o ON s.group_key = o.group_key AND s.seq = o.seq AND o.pending
    GROUP BY s.group_key
),

counted AS (
    SELECT s.group_key, s.seq, s.signature, count(*) AS ranks
    FROM signed AS s SEMI JOIN torn AS t ON s.group_key = t.group_key AND s.seq = t.seq
    GROUP BY s.group_key, s.seq, s.signature
),

majority AS (
    SELECT c.group_key, c.signature
    FROM counted AS c
    INNER JOIN (SELECT group_key, max(size) AS size FROM group_member GROUP BY group_key) AS m
        ON c.group_key = m.group_key
    WHERE 2 * c.ranks > m.size
)

SELECT s.group_key, s.seq, s.rank, s.operation, s.signature, m.signature AS usual, s.signature <> m.signature AS odd
FROM signed AS s
SEMI JOIN torn AS t ON s.group_key = t.group_key AND s.seq = t.seq
LEFT JOIN majority AS m ON s.group_key = m.group_key
ORDER BY s.group_key, s.rank
