/*---
title = "Collectives that at least one rank has not finished, with what every rank says about them"
doc   = """
One row per process group, number and rank. Operations that were batched under one number give one row, their
signatures joined in order. Where only counters are known, the first and the last open number stand for all."""
reads = ["collective_statement", "rank_in_group"]
materialize = true
[returns]
group_key = "VARCHAR"
seq = "BIGINT"
rank = "INTEGER"
pending = "BOOLEAN"
gloo = "BOOLEAN"
operation = "VARCHAR"
signature = "VARCHAR"
record = "BIGINT"
time = "BIGINT"
timeout = "BIGINT"
frames = "VARCHAR"
source = "VARCHAR"
[[case]]
name = "pending, finished elsewhere, batched, and by counters alone"
given.collective_statement = """
source | group_key | statement | rank | record | seq | operation  | signature | pending
d0     | a         | entry     | 0    | 7      | 5   | broadcast  | bc 4      | true
d0     | a         | entry     | 0    | 8      | 5   | broadcast  | bc 5      | true
d1     | a         | entry     | 1    | 3      | 5   | broadcast  | bc 4      | false
d1     | a         | entry     | 1    | 4      | 6   | all_reduce | ar 1      | false
"""
given.rank_in_group = """
group_key | rank | gloo  | enqueued | launched | completed
a         | 0    | false | 5        | 5        | 4
a         | 1    | false | 6        | 6        | 6
a         | 2    | false | 7        | 7        | 4
"""
expect = """
group_key | seq | rank | pending | signature  | record
a         | 5   | 0    | true    | bc 4; bc 5 | 7
a         | 5   | 1    | false   | bc 4       | 3
a         | 5   | 2    | true    |            |
a         | 7   | 2    | true    |            |
"""
[[case]]
name = "a watchdog's line has no number of a record"
given.collective_statement = """
group_key | statement | rank | seq | operation | pending
a         | entry     | 0    | 9   | ALLREDUCE | true
"""
given.rank_in_group = """
group_key | rank | gloo  | enqueued
a         | 0    | false | 9
"""
expect = """
seq | rank | pending | operation
9   | 0    | true    | ALLREDUCE
"""
[[case]]
name = "gloo: retired in a later dump means failed if nothing came after"
given.collective_statement = """
source | group_key | statement | rank | record | seq | operation  | pending
early  | a         | entry     | 0    | 7      | 6   | all_reduce | true
late   | a         | entry     | 0    | 7      | 6   | all_reduce | false
early  | b         | entry     | 0    | 6      | 5   | all_reduce | true
late   | b         | entry     | 0    | 6      | 5   | all_reduce | false
"""
given.rank_in_group = """
group_key | rank | gloo | enqueued | launched | completed
a         | 0    | true | 6        | 6        | 6
b         | 0    | true | 6        | 6        | 6
"""
expect = """
group_key | seq | rank | pending
a         | 6   | 0    | true
b         | 5   | 0    | false
"""
---*/
WITH hot AS (
    SELECT DISTINCT group_key, seq
    FROM collective_statement
    WHERE statement = 'entry' AND pending AND peer IS NULL
),

by_source AS (
    SELECT
        s.source,
        s.group_key,
        s.seq,
        s.rank,
        bool_or(s.pending) AS pending,
        string_agg(s.signature, '; ' ORDER BY s.record) AS signature,
        coalesce(arg_min(s.operation, s.record), min(s.operation)) AS operation,  -- a watchdog's line has no record
        arg_min(s.frames, s.record) AS frames,
        min(s.record) AS record,
        min(s.time) AS time,
        max(s.timeout) AS timeout
    FROM collective_statement AS s
    SEMI JOIN hot AS h ON s.group_key = h.group_key AND s.seq = h.seq
    WHERE s.statement = 'entry' AND s.peer IS NULL
    GROUP BY s.source, s.group_key, s.seq, s.rank
),

entered AS (
    SELECT
        b.group_key,
        b.seq,
        b.rank,
        CASE
            WHEN bool_or(r.gloo) THEN bool_or(b.pending) AND b.seq >= max(r.enqueued)
            ELSE bool_and(b.pending) AND b.seq > coalesce(max(r.completed), -1)
        END AS pending,
        bool_or(r.gloo) AS gloo,
        max(b.operation) AS operation,
        max(b.signature) AS signature,
        min(b.record) AS record,
        min(b.time) AS time,
        max(b.timeout) AS timeout,
        max(b.frames) AS frames,
        min(b.source) AS source
    FROM by_source AS b
    INNER JOIN rank_in_group AS r ON b.group_key = r.group_key AND b.rank = r.rank
    GROUP BY b.group_key, b.seq, b.rank
),

counted AS (
    SELECT
        r.group_key,
        unnest(list_distinct([r.completed + 1, r.launched])) AS seq,
        r.rank,
        r.gloo,
        r.time
    FROM rank_in_group AS r
    ANTI JOIN entered AS e ON r.group_key = e.group_key AND r.rank = e.rank
    WHERE r.completed < r.launched AND NOT r.gloo
)

SELECT group_key, seq, rank, pending, gloo, operation, signature, record, time, timeout, frames, source
FROM entered
UNION ALL
SELECT
    group_key,
    seq,
    rank,
    TRUE AS pending,
    gloo,
    NULL AS operation,
    NULL AS signature,
    NULL AS record,
    time,
    NULL AS timeout,
    NULL AS frames,
    NULL AS source
FROM counted
ORDER BY group_key, seq, rank
