/*---
title = "Collectives that do not end and put the blame on nobody"
doc   = """
kind: mismatch (ranks of a group disagree and neither side is the majority of it), order (ranks wait for each other
in a circle), transport (every rank of the group is in the same operation, and none gets out), unknown (ranks wait for
others that left no evidence). `certain` where a watchdog or an exception of a timeout says that the job hung, or,
for unknown, where half of the ranks wait on a backend whose dumps tell open from finished. `explained` where a rank
had failed by itself before: then the others wait for good reason. `time` is when the wait began."""
reads = ["signature_mismatch", "wait_edge", "rank_head", "open_operation", "group_member", "rank_in_group", "hang_suspect", "events", "nccl_suspect"]
materialize = true
[returns]
kind = "VARCHAR"
group_name = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
ranks = "INTEGER[]"
absent = "INTEGER[]"
time = "BIGINT"
source = "VARCHAR"
certain = "BOOLEAN"
explained = "BOOLEAN"
text = "VARCHAR"
[[case]]
name = "all ranks of the group stand in the same operation"
given.open_operation = """
group_key | seq | rank | pending | gloo  | operation
a         | 5   | 0    | true    | false | all_reduce
a         | 5   | 1    | true    | false | all_reduce
"""
given.rank_in_group = """
group_key | rank | gloo  | enqueued
a         | 0    | false | 5
a         | 1    | false | 5
"""
given.group_member = """
group_key | group_name | rank | stated
a         | 3          | 0    | true
a         | 3          | 1    | true
"""
given.rank_head = """
rank | group_key | seq | transfer
0    | a         | 5   | false
1    | a         | 5   | false
"""
given.events = """
kind     | role
watchdog | symptom
"""
expect = """
kind      | group_name | seq | operation  | ranks  | certain
transport | 3          | 5   | all_reduce | [0, 1] | true
"""
[[case]]
name = "two ranks entered two groups in opposite order"
given.wait_edge = """
waiter | blocker | group_key | seq | operation  | reason | known
0      | 1       | a         | 1   | all_reduce | busy   | true
1      | 0       | b         | 1   | all_reduce | busy   | true
"""
given.rank_head = """
rank | group_key | seq | transfer
0    | a         | 1   | false
1    | b         | 1   | false
"""
expect = """
kind  | ranks  | certain
order | [0, 1] | false
"""
[[case]]
name = "everybody waits for a rank without evidence"
given.wait_edge = """
waiter | blocker | group_key | seq | operation  | reason      | known
0      | 2       | a         | 1   | all_reduce | no evidence | false
1      | 2       | a         | 1   | all_reduce | no evidence | false
"""
given.rank_in_group = """
group_key | rank | gloo  | enqueued
a         | 0    | false | 1
a         | 1    | false | 1
"""
given.rank_head = """
rank | group_key | seq | transfer
0    | a         | 1   | false
1    | a         | 1   | false
"""
expect = """
kind    | seq | operation  | ranks  | absent | certain
unknown | 1   | all_reduce | [0, 1] | [2]    | true
"""
[[case]]
name = "a suspect is known: nothing else is asked"
given.hang_suspect = """
rank | reason
2    | not joined
"""
given.wait_edge = """
waiter | blocker | group_key | seq | operation  | reason      | known
0      | 2       | a         | 1   | all_reduce | not joined  | true
0      | 3       | a         | 1   | all_reduce | no evidence | false
"""
expect = "kind"
[[case]]
name = "NCCL's log or RAS shows who made fewer calls, but not whether it waits itself"
given.nccl_suspect = """
rank | reason     | origin   | group_key | seq | operation  | waiters   | proven
1    | not joined | nccl_ras | c         | 6   | all_reduce | [0, 2, 3] | false
2    | not joined | nccl_ras | c         | 7   | all_reduce | [0, 3]    | false
"""
given.events = """
kind     | role
watchdog | symptom
"""
expect = """
kind    | seq | operation  | ranks     | absent | certain | text
unknown | 6   | all_reduce | [0, 2, 3] | []     | true    | 3 ranks made call 6 (all_reduce) of communicator c that rank 1 did not make (nccl_ras); undecided, since nothing tells whether that rank waits itself
"""
---*/
WITH alarm AS (
    SELECT count(*) > 0 AS rang
    FROM events
    WHERE kind = 'watchdog' OR (kind = 'exception' AND regexp_matches(message, '(?i)timed? ?out'))
),

began AS (
    SELECT min(time - coalesce(duration, 0)) AS time FROM events WHERE kind = 'watchdog' AND name <> 'dump_signal'
),

own_failure AS (
    SELECT count(*) > 0 AS seen
    FROM events AS e
    CROSS JOIN began AS b
    WHERE
        e.role = 'root'
        AND e.kind IN ('exception', 'oom', 'signal', 'device_error', 'nccl_transport', 'nccl_setup')
        AND (e.time IS NULL OR b.time IS NULL OR e.time <= b.time)
),

mismatch AS (
    SELECT
        'mismatch' AS kind,
        s.group_key,
        s.seq,
        min(s.operation) AS operation,
        list_sort(list(s.rank)) AS ranks,
        TRUE AS certain,
        string_agg(DISTINCT s.signature, ' against ' ORDER BY s.signature) AS text
    FROM signature_mismatch AS s
    GROUP BY s.group_key, s.seq
    HAVING NOT coalesce(bool_or(s.odd), FALSE)
),

circle AS (
    SELECT
        'order' AS kind,
        min(h.group_key) AS group_key,
        arg_min(h.seq, h.group_key) AS seq,
        CAST(NULL AS VARCHAR) AS operation,
        list_sort(list(DISTINCT h.rank)) AS ranks,
        string_agg(h.rank || ' in ' || h.group_key || ' ' || h.seq, ', ' ORDER BY h.rank) AS text
    FROM (
        SELECT unnest(wait_cycles(list(waiter), list(blocker))) AS rank
        FROM wait_edge
        WHERE known
    ) AS c
    INNER JOIN rank_head AS h ON c.rank = h.rank
    HAVING count(*) > 0
),

full_house AS (
    SELECT
        'transport' AS kind,
        m.group_key,
        h.seq,
        max(o.operation) AS operation,
        list_sort(list(DISTINCT m.rank)) AS ranks,
        'every rank of the group has entered it, and it does not end' AS text
    FROM (SELECT DISTINCT group_key, seq FROM rank_head WHERE NOT transfer) AS h
    INNER JOIN group_member AS m ON h.group_key = m.group_key
    LEFT JOIN rank_in_group AS r ON m.group_key = r.group_key AND m.rank = r.rank
    LEFT JOIN open_operation AS o ON m.group_key = o.group_key AND h.seq = o.seq AND m.rank = o.rank
    LEFT JOIN rank_head AS own ON m.rank = own.rank
    GROUP BY m.group_key, h.seq
    HAVING
        count(DISTINCT m.rank) > 1
        AND bool_and(coalesce(r.enqueued >= h.seq, FALSE))
        -- Whoever has it open must have nothing older open. On gloo all must have it open: others may have failed.
        AND bool_and(NOT coalesce(o.pending, FALSE) OR (h.group_key = own.group_key AND h.seq = own.seq))
        AND (bool_and(coalesce(o.pending, FALSE)) OR NOT bool_or(coalesce(r.gloo, FALSE)))
),

nobody AS (
    SELECT
        'unknown' AS kind,
        min(e.group_key) AS group_key,
        arg_min(e.seq, e.group_key) AS seq,
        arg_min(e.operation, e.group_key) AS operation,
        list_sort(list(DISTINCT e.waiter)) AS ranks,
        list_sort(list(DISTINCT e.blocker) FILTER (WHERE e.blocker NOT IN (SELECT rank FROM rank_in_group))) AS absent,
        'nothing tells who is missing' AS text
    FROM wait_edge AS e
    WHERE e.reason IN ('no evidence', 'no partner')
    HAVING count(*) > 0
),

called AS (  -- the rank furthest behind, by NCCL's own word
    SELECT
        'unknown' AS kind, group_key, seq, operation, waiters AS ranks,
        CASE reason
            WHEN 'mismatch' THEN 'NCCL''s log has other calls on rank ' || rank || ' as number ' || seq || ' of communicator ' || group_key || ': ' || coalesce(detail, '') || '; undecided, since a lost line may be the reason or no call has the majority'
            ELSE len(waiters) || CASE len(waiters) WHEN 1 THEN ' rank' ELSE ' ranks' END || ' made call ' || seq || ' (' || coalesce(operation, 'collective') || ') of communicator ' || group_key || ' that rank ' || rank || ' did not make (' || origin || '); undecided, since nothing tells whether that rank waits itself'
        END AS text
    FROM nccl_suspect
    WHERE NOT proven
    QUALIFY row_number() OVER (ORDER BY len(waiters) DESC, group_key, seq, rank) = 1
),

half AS (
    SELECT
        2 * (SELECT count(*) FROM rank_head) >= count(DISTINCT rank)
        AND (SELECT count(*) FROM rank_head) > 1
        AND NOT coalesce(bool_or(gloo), FALSE) AS waits
    FROM rank_in_group
),

judged AS (
    SELECT 1 AS place, kind, group_key, seq, operation, ranks, [] AS absent, certain, text FROM mismatch
    UNION ALL
    SELECT 2 AS place, kind, group_key, seq, operation, ranks, [] AS absent, (SELECT rang FROM alarm) AS certain, text
    FROM circle
    UNION ALL
    SELECT 3 AS place, kind, group_key, seq, operation, ranks, [] AS absent, (SELECT rang FROM alarm) AS certain, text
    FROM full_house
    UNION ALL
    SELECT
        4 AS place, kind, group_key, seq, operation, ranks, coalesce(absent, []) AS absent,
        (SELECT rang FROM alarm) OR (SELECT waits FROM half) AS certain,
        text
    FROM nobody
    UNION ALL
    SELECT 5 AS place, kind, group_key, seq, operation, ranks, [] AS absent, (SELECT rang FROM alarm) AS certain, text
    FROM called
)

SELECT
    j.kind,
    coalesce(n.group_name, j.group_key) AS group_name,
    j.seq,
    coalesce(j.operation, 'collective') AS operation,
    j.ranks,
    j.absent,
    coalesce((SELECT time FROM began), t.time) AS time,
    t.source,
    j.certain,
    (SELECT seen FROM own_failure) AS explained,
    j.text
FROM judged AS j
LEFT JOIN (
    SELECT group_key, any_value(group_name) AS group_name FROM group_member GROUP BY group_key
) AS n ON j.group_key = n.group_key
LEFT JOIN (
    SELECT group_key, seq, min(time) AS time, min(source) AS source FROM open_operation GROUP BY group_key, seq
) AS t ON j.group_key = t.group_key AND j.seq = t.seq
WHERE j.place = (SELECT min(place) FROM judged) AND NOT EXISTS (SELECT 1 FROM hang_suspect)
ORDER BY j.kind, group_name, j.seq
