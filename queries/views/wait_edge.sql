/*---
title = "Who waits for whom, in which operation, and how sure that is"
doc   = """
reason: not joined (the blocker's own evidence ends before the operation), no evidence (nothing is known of the
blocker that far), busy (it has joined, but an older operation of its own is open), no partner (a send or receive
whose other side is not known to be open), partner (both sides are open). Only known edges can put blame on a rank."""
reads = ["open_operation", "open_transfer", "rank_in_group", "group_member", "rank_head"]
materialize = true
[returns]
waiter = "INTEGER"
blocker = "INTEGER"
group_key = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
reason = "VARCHAR"
known = "BOOLEAN"
[[case]]
name = "rank 2 has not joined, rank 3 left no evidence"
given.open_operation = """
group_key | seq | rank | pending | operation  | record
a         | 5   | 0    | true    | all_reduce | 30
a         | 5   | 1    | true    | all_reduce | 31
"""
given.rank_in_group = """
group_key | rank | enqueued | enqueued_most
a         | 0    | 5        | 5
a         | 1    | 5        | 5
a         | 2    | 4        | 4
"""
given.group_member = """
group_key | rank
a         | 0
a         | 1
a         | 2
a         | 3
"""
given.rank_head = """
rank | group_key | seq
0    | a         | 5
1    | a         | 5
"""
expect = """
waiter | blocker | seq | reason      | known
0      | 2       | 5   | not joined  | true
0      | 3       | 5   | no evidence | false
1      | 2       | 5   | not joined  | true
1      | 3       | 5   | no evidence | false
"""
[[case]]
name = "two groups entered in opposite order: each side has joined, but is busy with the other"
given.open_operation = """
group_key | seq | rank | pending | operation  | record
a         | 1   | 0    | true    | all_reduce | 1
b         | 1   | 0    | true    | all_reduce | 2
a         | 1   | 1    | true    | all_reduce | 2
b         | 1   | 1    | true    | all_reduce | 1
"""
given.rank_in_group = """
group_key | rank | enqueued | enqueued_most
a         | 0    | 1        | 1
b         | 0    | 1        | 1
a         | 1    | 1        | 1
b         | 1    | 1        | 1
"""
given.group_member = """
group_key | rank
a         | 0
a         | 1
b         | 0
b         | 1
"""
given.rank_head = """
rank | group_key | seq | transfer
0    | a         | 1   | false
1    | b         | 1   | false
"""
expect = """
waiter | blocker | group_key | reason | known
0      | 1       | a         | busy   | true
1      | 0       | b         | busy   | true
"""
---*/
WITH waiter AS (
    SELECT
        group_key,
        rank,
        min(seq) AS first_seq,
        max(seq) AS last_seq,
        arg_min(operation, seq) AS operation
    FROM open_operation
    WHERE pending
    GROUP BY group_key, rank
),

pair AS (
    SELECT
        w.group_key,
        w.rank AS waiter,
        m.rank AS blocker,
        w.first_seq,
        w.last_seq,
        w.operation,
        r.enqueued,
        r.enqueued_most
    FROM waiter AS w
    INNER JOIN group_member AS m ON w.group_key = m.group_key AND w.rank <> m.rank
    LEFT JOIN rank_in_group AS r ON m.group_key = r.group_key AND m.rank = r.rank
    WHERE r.enqueued IS NULL OR r.enqueued < w.last_seq
),

collective AS (
    SELECT
        waiter,
        blocker,
        group_key,
        greatest(first_seq, coalesce(enqueued, -1) + 1) AS seq,
        operation,
        CASE WHEN enqueued_most < last_seq THEN 'not joined' ELSE 'no evidence' END AS reason,
        coalesce(enqueued_most < last_seq, FALSE) AS known
    FROM pair
),

busy AS (
    SELECT
        h.rank AS waiter,
        o.rank AS blocker,
        h.group_key,
        h.seq,
        o.operation,
        'busy' AS reason,
        TRUE AS known
    FROM rank_head AS h
    INNER JOIN open_operation AS o
        ON h.group_key = o.group_key AND h.seq = o.seq AND h.rank <> o.rank AND o.pending
    INNER JOIN rank_head AS theirs ON o.rank = theirs.rank
    WHERE NOT h.transfer AND (theirs.group_key <> h.group_key OR theirs.seq <> h.seq OR theirs.transfer)
),

transfer AS (
    SELECT
        rank AS waiter,
        partner AS blocker,
        group_key,
        seq,
        operation,
        CASE WHEN unmet THEN 'not joined' WHEN partner_open >= open THEN 'partner' ELSE 'no partner' END AS reason,
        coalesce(unmet, FALSE) AS known
    FROM open_transfer
)

SELECT waiter, blocker, group_key, seq, operation, reason, known FROM collective
UNION ALL
SELECT waiter, blocker, group_key, seq, operation, reason, known FROM busy
UNION ALL
SELECT waiter, blocker, group_key, seq, operation, reason, known FROM transfer
ORDER BY waiter, blocker, group_key, seq
