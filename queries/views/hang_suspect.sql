/*---
title = "Ranks on which the evidence of a hang puts blame, and how"
doc   = """
mismatch: entered another collective than the majority of its group. behind: others completed an operation that
needs this rank, and a later one, while it has both open: its device or stream stands still. inside: it alone has
entered an operation without its launch having returned. not joined: others wait for it in an operation that it has
not entered, and it waits for nobody; NCCL's own log or RAS may say so too (nccl_suspect). Nobody is named for lack of evidence."""
reads = ["open_operation", "rank_in_group", "group_member", "rank_head", "wait_edge", "signature_mismatch", "rank_idle", "nccl_suspect"]
materialize = true
[returns]
rank = "INTEGER"
reason = "VARCHAR"
group_key = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
waiting = "BIGINT"
detail = "VARCHAR"
[[case]]
name = "an idle rank that others wait for is named, a rank that waits itself is not"
given.rank_in_group = """
group_key | rank | gloo  | enqueued | enqueued_most | completed | partial
a         | 0    | false | 5        | 5             | 4         | false
a         | 1    | false | 4        | 4             | 4         | false
b         | 1    | false | 9        | 9             | 8         | false
b         | 2    | false | 8        | 8             | 8         | false
"""
given.rank_head = """
rank | pending | group_key | seq
0    | 1       | a         | 5
1    | 1       | b         | 9
"""
given.wait_edge = """
waiter | blocker | group_key | seq | operation  | reason     | known
0      | 1       | a         | 5   | all_reduce | not joined | true
1      | 2       | b         | 9   | all_gather | not joined | true
"""
given.rank_idle = """
rank
2
"""
expect = """
rank | reason     | group_key | seq | operation  | waiting
2    | not joined | b         | 9   | all_gather | 1
"""
[[case]]
name = "behind: rank 1 completed what rank 0 has open, and the next one too"
given.open_operation = """
group_key | seq | rank | pending | gloo  | operation
a         | 5   | 0    | true    | false | all_reduce
a         | 6   | 0    | true    | false | all_reduce
a         | 5   | 1    | false   | false | all_reduce
a         | 6   | 1    | false   | false | all_reduce
"""
given.rank_in_group = """
group_key | rank | gloo  | enqueued | completed
a         | 0    | false | 6        | 4
a         | 1    | false | 6        | 6
"""
given.group_member = """
group_key | rank | size | stated
a         | 0    | 2    | true
a         | 1    | 2    | true
"""
given.rank_head = """
rank | pending | group_key | seq
0    | 2       | a         | 5
"""
expect = """
rank | reason | group_key | seq | operation  | waiting
0    | behind | a         | 5   | all_reduce | 1
"""
[[case]]
name = "a broadcast root may be done early: nobody is behind"
given.open_operation = """
group_key | seq | rank | pending | gloo  | operation
a         | 5   | 0    | true    | false | broadcast
a         | 6   | 0    | true    | false | broadcast
a         | 5   | 1    | false   | false | broadcast
a         | 6   | 1    | false   | false | broadcast
"""
given.rank_in_group = """
group_key | rank | gloo  | enqueued | completed
a         | 0    | false | 6        | 4
a         | 1    | false | 6        | 6
"""
given.group_member = """
group_key | rank | size | stated
a         | 0    | 2    | true
a         | 1    | 2    | true
"""
expect = """
rank | reason
"""
[[case]]
name = "inside: its launch has not returned, those of all others have"
given.open_operation = """
group_key | seq | rank | pending | gloo  | operation  | record
a         | 5   | 0    | true    | false | all_reduce | 4
a         | 5   | 1    | true    | false | all_reduce | 4
a         | 5   | 2    | true    | false | all_reduce | 4
"""
given.rank_in_group = """
group_key | rank | gloo  | mixed | enqueued | launched | completed
a         | 0    | false | false | 5        | 5        | 4
a         | 1    | false | false | 5        | 4        | 4
a         | 2    | false | false | 5        | 5        | 4
"""
given.group_member = """
group_key | rank | size | stated
a         | 0    | 3    | true
a         | 1    | 3    | true
a         | 2    | 3    | true
"""
given.rank_head = """
rank | pending | group_key | seq
0    | 1       | a         | 5
1    | 1       | a         | 5
2    | 1       | a         | 5
"""
expect = """
rank | reason | group_key | seq | operation  | waiting
1    | inside | a         | 5   | all_reduce | 2
"""
[[case]]
name = "NCCL's own word counts where nothing else names a rank, and only if it is proven"
given.nccl_suspect = """
rank | reason     | group_key | seq | operation  | waiters | proven | detail
1    | not joined | c         | 6   | all_reduce | [0, 3]  | true   | why
2    | not joined | c         | 6   | all_reduce | [0, 3]  | false  | why
"""
expect = """
rank | reason     | group_key | seq | waiting | detail
1    | not joined | c         | 6   | 2       | why
"""
---*/
WITH mismatch AS (
    SELECT
        s.rank,
        'mismatch' AS reason,
        s.group_key,
        s.seq,
        s.operation,
        (
            SELECT count(*) FROM signature_mismatch AS o
            WHERE o.group_key = s.group_key AND NOT o.odd
        ) AS waiting,
        s.signature || ' where the others have ' || s.usual AS detail
    FROM signature_mismatch AS s
    WHERE s.odd
),

-- Operations that no rank can complete before every rank has begun them. Rooted ones (broadcast, reduce, gather,
-- scatter) let the root or the leaves go early.
mutual AS (
    SELECT o.group_key, o.seq, o.rank, o.operation
    FROM open_operation AS o
    ANTI JOIN signature_mismatch AS s ON o.group_key = s.group_key
    WHERE
        o.pending
        AND NOT o.gloo
        AND regexp_matches(o.operation, '^_?(all_?reduce|all_?gather|reduce_scatter|all_?to_?all|barrier)')
),

best AS (
    SELECT group_key, max(completed) AS completed
    FROM rank_in_group
    GROUP BY group_key
),

passed AS (  -- the rank's own open operations that another rank of the group has completed
    SELECT m.group_key, m.rank, min(o.first_seq) AS first_seq, max(m.seq) AS last_seq
    FROM mutual AS m
    INNER JOIN best AS b ON m.group_key = b.group_key AND m.seq <= b.completed
    INNER JOIN (
        SELECT group_key, rank, min(seq) AS first_seq
        FROM open_operation
        WHERE pending
        GROUP BY group_key, rank
    ) AS o ON m.group_key = o.group_key AND m.rank = o.rank
    GROUP BY m.group_key, m.rank
),

alone AS (  -- groups of which every member but one is known to have completed the operation
    SELECT p.group_key, p.rank
    FROM passed AS p
    INNER JOIN group_member AS m ON p.group_key = m.group_key AND p.rank <> m.rank AND m.stated
    LEFT JOIN rank_in_group AS r ON m.group_key = r.group_key AND m.rank = r.rank
    GROUP BY p.group_key, p.rank
    HAVING bool_and(coalesce(r.completed >= p.last_seq, FALSE)) AND count(*) > 1
),

behind_group AS (
    SELECT p.group_key, p.rank, p.first_seq
    FROM passed AS p
    LEFT JOIN alone AS a ON p.group_key = a.group_key AND p.rank = a.rank
    WHERE p.last_seq > p.first_seq OR a.rank IS NOT NULL
),

behind AS (
    SELECT
        b.rank,
        'behind' AS reason,
        min(b.group_key) AS group_key,
        arg_min(b.first_seq, b.group_key) AS seq,
        arg_min(o.operation, b.group_key) AS operation,
        count(DISTINCT r.rank) AS waiting,
        'others have completed it' AS detail
    FROM behind_group AS b
    INNER JOIN open_operation AS o ON b.group_key = o.group_key AND b.first_seq = o.seq AND b.rank = o.rank
    INNER JOIN rank_in_group AS r ON b.group_key = r.group_key AND r.completed >= b.first_seq
    GROUP BY b.rank
),

credible AS (
    -- Dumps taken at different moments of a job that runs on make everybody but the last look behind.
    SELECT count(*) * 2 <= (SELECT count(DISTINCT rank) FROM rank_in_group) AS yes FROM behind
),

entered AS (  -- a recorded operation of one whole group: who has launched it, who is still inside the call
    SELECT
        o.group_key,
        o.seq,
        any_value(o.operation) AS operation,
        count(*) AS ranks,
        count(*) FILTER (WHERE r.launched >= o.seq) AS launched,
        min(o.rank) FILTER (WHERE r.launched = o.seq - 1) AS rank,
        count(*) FILTER (WHERE r.launched = o.seq - 1) AS inside
    FROM open_operation AS o
    INNER JOIN rank_in_group AS r ON o.group_key = r.group_key AND o.rank = r.rank
    WHERE o.pending AND NOT o.gloo AND NOT r.mixed AND o.record IS NOT NULL
    GROUP BY o.group_key, o.seq
),

inside AS (
    SELECT
        e.rank,
        'inside' AS reason,
        e.group_key,
        e.seq,
        e.operation,
        e.launched AS waiting,
        'its launch has not returned' AS detail
    FROM entered AS e
    INNER JOIN (
        SELECT group_key, max(size) AS size FROM group_member WHERE stated GROUP BY group_key
    ) AS m ON e.group_key = m.group_key
    SEMI JOIN rank_head AS h ON e.rank = h.rank AND e.group_key = h.group_key AND e.seq = h.seq
    WHERE e.inside = 1 AND e.launched = e.ranks - 1 AND e.ranks = m.size AND e.ranks > 2
),

awaited AS (
    SELECT
        e.blocker AS rank,
        'not joined' AS reason,
        min(e.group_key) AS group_key,
        arg_min(e.seq, e.group_key) AS seq,
        arg_min(e.operation, e.group_key) AS operation,
        count(DISTINCT e.waiter) AS waiting,
        'it is in no recorded operation itself' AS detail
    FROM wait_edge AS e
    SEMI JOIN rank_idle AS i ON e.blocker = i.rank
    WHERE e.known AND e.reason = 'not joined'
    GROUP BY e.blocker
),

judged AS (
    SELECT 1 AS place, rank, reason, group_key, seq, operation, waiting, detail FROM mismatch
    UNION ALL
    SELECT 2 AS place, rank, reason, group_key, seq, operation, waiting, detail FROM behind
    WHERE (SELECT yes FROM credible)
    UNION ALL
    SELECT 3 AS place, rank, reason, group_key, seq, operation, waiting, detail FROM awaited
    UNION ALL
    SELECT 4 AS place, rank, reason, group_key, seq, operation, waiting, detail FROM inside
    UNION ALL
    SELECT
        5 AS place, rank, min(reason), min(group_key), arg_min(seq, group_key), arg_min(operation, group_key),
        max(len(waiters)), arg_min(detail, group_key)
    FROM nccl_suspect
    WHERE proven
    GROUP BY rank
)

SELECT j.rank, j.reason, j.group_key, j.seq, j.operation, j.waiting, j.detail
FROM judged AS j
WHERE
    j.place = (SELECT min(place) FROM judged)
    -- A mismatch without a majority explains what hangs behind it, and names nobody.
    AND (j.place = 1 OR NOT EXISTS (SELECT 1 FROM signature_mismatch))
ORDER BY j.rank
