/*---
title = "Ranks that made fewer, or other, calls than the rest of a communicator, by NCCL's own word"
doc   = """
A call proves neither that it ended nor, if it is missing, that its rank waits for nobody: it may be held by an earlier one.
So not joined is `proven` only where a watchdog of another rank timed out, the rank's own watchdog lives and has nothing open,
nobody is behind it anywhere, every member left evidence, and none of its own can be missing: its log goes on (RAS: two
equal answers), in step with the others up to there. mismatch: the first call of which the members make different ones; proven
against a majority of the whole communicator, and where a lost line cannot explain it. Nothing is said where there are
Flight Recorder dumps: those know more."""
reads = ["nccl_progress", "nccl_statement", "collective_statement", "events"]
materialize = true
[returns]
rank = "INTEGER"
reason = "VARCHAR"
origin = "VARCHAR"
group_key = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
waiters = "INTEGER[]"
proven = "BOOLEAN"
detail = "VARCHAR"
[[case]]
name = "rank 1 did not make call 6, its log goes on and has nothing open"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 2    | 0    | 6      | true    | a      | 60
nccl_log | c         | 2    | 1    | 5      | true    | b      | 50
"""
given.nccl_statement = """
statement | group_key | rank | seq | operation  | signature | hint | size | sound
call      | c         | 0    | 5   | all_reduce | ar 8      | 4    | 2    | true
call      | c         | 0    | 6   | all_gather | ag 8      | 5    | 2    | true
call      | c         | 1    | 5   | all_reduce | ar 8      | 4    | 2    | true
"""
given.collective_statement = """
origin   | statement | rank | seq | pending | last_enqueued | last_completed
watchdog | entry     | 0    | 7   | true    |               |
watchdog | status    | 1    |     |         | 6             | 6
"""
given.events = """
kind     | name        | rank | source | line
watchdog | timeout     | 0    | a      | 70
watchdog | dump_signal | 1    | b      | 51
"""
expect = """
rank | reason     | group_key | seq | operation  | waiters | proven
1    | not joined | c         | 6   | all_gather | [0]     | true
"""
[[case]]
name = "the same, but its calls end the file: the log may be cut"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 2    | 0    | 6      | true    | a      | 60
nccl_log | c         | 2    | 1    | 5      | true    | nccl.b | 50
"""
given.nccl_statement = """
statement | group_key | rank | seq | operation  | signature | hint | size | sound
call      | c         | 0    | 5   | all_reduce | ar 8      | 4    | 2    | true
call      | c         | 0    | 6   | all_gather | ag 8      | 5    | 2    | true
call      | c         | 1    | 5   | all_reduce | ar 8      | 4    | 2    | true
"""
given.collective_statement = """
origin   | statement | rank | seq | pending | last_enqueued | last_completed
watchdog | entry     | 0    | 7   | true    |               |
watchdog | status    | 1    |     |         | 6             | 6
"""
given.events = """
kind     | name        | rank | source | line
watchdog | timeout     | 0    | a      | 70
watchdog | dump_signal | 1    | b      | 51
"""
expect = """
rank | reason     | proven
1    | not joined | false
"""
[[case]]
name = "a line of its log is lost: at call 5 NCCL's own counter is ahead of the others'"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 2    | 0    | 6      | true    | a      | 60
nccl_log | c         | 2    | 1    | 5      | true    | b      | 50
"""
given.nccl_statement = """
statement | group_key | rank | seq | operation  | signature | hint | size | sound
call      | c         | 0    | 5   | all_reduce | ar 8      | 4    | 2    | true
call      | c         | 0    | 6   | all_reduce | ar 8      | 5    | 2    | true
call      | c         | 1    | 5   | all_reduce | ar 8      | 5    | 2    | true
"""
given.collective_statement = """
origin   | statement | rank | seq | pending | last_enqueued | last_completed
watchdog | entry     | 0    | 7   | true    |               |
watchdog | status    | 1    |     |         | 6             | 6
"""
given.events = """
kind     | name        | rank | source | line
watchdog | timeout     | 0    | a      | 70
watchdog | dump_signal | 1    | b      | 51
"""
expect = """
rank | proven
1    | false
"""
[[case]]
name = "its own watchdog timed out too: it waits itself, as rank 0 does that reads the loss"
given.nccl_progress = """
origin   | group_key | operation  | size | rank | called | settled | source | line
nccl_ras | c         | all_reduce | 2    | 0    | 6      | true    | r      | 2
nccl_ras | c         | all_reduce | 2    | 1    | 5      | true    | r      | 2
"""
given.collective_statement = """
origin   | statement | rank | seq | pending | last_enqueued | last_completed
watchdog | entry     | 0    | 5   | true    |               |
watchdog | entry     | 1    | 5   | true    |               |
watchdog | status    | 1    |     |         | 5             | 4
"""
expect = """
rank | reason     | origin   | seq | operation  | proven
1    | not joined | nccl_ras | 6   | all_reduce | false
"""
[[case]]
name = "two RAS answers, rank 1 has nothing open; rank 2 stands behind it elsewhere in a second job"
given.nccl_progress = """
origin   | group_key | operation  | size | rank | called | settled | source | line
nccl_ras | c         | all_reduce | 2    | 0    | 6      | true    | r      | 2
nccl_ras | c         | all_reduce | 2    | 1    | 5      | true    | r      | 2
nccl_ras | d         | all_gather | 2    | 2    | 3      | true    | r      | 2
nccl_ras | d         | all_gather | 2    | 1    | 3      | true    | r      | 2
"""
given.collective_statement = """
origin   | statement | rank | seq | pending | last_enqueued | last_completed
watchdog | entry     | 0    | 5   | true    |               |
watchdog | status    | 1    |     |         | 5             | 5
"""
given.events = """
kind     | name        | rank | source | line
watchdog | dump_signal | 1    | b      | 51
"""
expect = """
rank | seq | proven
1    | 6   | true
"""
[[case]]
name = "a member of its communicator left no evidence"
given.nccl_progress = """
origin   | group_key | operation  | size | rank | called | settled | source | line
nccl_ras | c         | all_reduce | 3    | 0    | 6      | true    | r      | 2
nccl_ras | c         | all_reduce | 3    | 1    | 5      | true    | r      | 2
"""
given.collective_statement = """
origin   | statement | rank | seq | pending | last_enqueued | last_completed
watchdog | entry     | 0    | 5   | true    |               |
watchdog | status    | 1    |     |         | 5             | 5
"""
given.events = """
kind     | name        | rank | source | line
watchdog | dump_signal | 1    | b      | 51
"""
expect = """
rank | seq | proven
1    | 6   | false
"""
[[case]]
name = "one of three makes another call; the job without an alarm proves nothing; Flight Recorder dumps know more"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 3    | 0    | 2      | true    | a      | 60
nccl_log | c         | 3    | 1    | 2      | true    | b      | 50
nccl_log | c         | 3    | 2    | 2      | true    | d      | 50
"""
given.nccl_statement = """
statement | group_key | rank | seq | operation  | signature | hint | size | sound
call      | c         | 0    | 2   | all_reduce | ar 8      | 4    | 3    | true
call      | c         | 1    | 2   | broadcast  | bc 8      | 4    | 3    | true
call      | c         | 2    | 2   | all_reduce | ar 8      | 4    | 3    | true
"""
given.events = """
kind     | name    | rank
watchdog | timeout | 0
"""
expect = """
rank | reason   | seq | operation | waiters | proven | detail
1    | mismatch | 2   | broadcast | [0, 2]  | true   | bc 8 where the others have ar 8
"""
[[case]]
name = "one of two makes another call: no majority"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 2    | 0    | 2      | true    | a      | 60
nccl_log | c         | 2    | 1    | 2      | true    | b      | 50
"""
given.nccl_statement = """
statement | group_key | rank | seq | operation  | signature | hint | size | sound
call      | c         | 0    | 2   | all_reduce | ar 8      | 4    | 2    | true
call      | c         | 1    | 2   | broadcast  | bc 8      | 4    | 2    | true
"""
given.events = """
kind     | name    | rank
watchdog | timeout | 0
"""
expect = """
rank | reason   | proven
0    | mismatch | false
1    | mismatch | false
"""
[[case]]
name = "its call is the next one of the others: a line may be lost, or a call skipped"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 3    | 0    | 3      | true    | a      | 60
nccl_log | c         | 3    | 1    | 2      | true    | b      | 50
nccl_log | c         | 3    | 2    | 3      | true    | d      | 50
"""
given.nccl_statement = """
statement | group_key | rank | seq | operation  | signature | hint | size | sound
call      | c         | 0    | 2   | all_reduce | ar 8      | 0    | 3    | true
call      | c         | 0    | 3   | broadcast  | bc 8      | 0    | 3    | true
call      | c         | 1    | 2   | broadcast  | bc 8      | 0    | 3    | true
call      | c         | 2    | 2   | all_reduce | ar 8      | 0    | 3    | true
call      | c         | 2    | 3   | broadcast  | bc 8      | 0    | 3    | true
"""
given.events = """
kind     | name    | rank
watchdog | timeout | 0
"""
expect = """
rank | reason   | proven
1    | mismatch | false
"""
[[case]]
name = "all ranks made the same calls"
given.nccl_progress = """
origin   | group_key | size | rank | called | settled | source | line
nccl_log | c         | 2    | 0    | 6      | true    | a      | 60
nccl_log | c         | 2    | 1    | 6      | true    | b      | 50
"""
given.events = """
kind     | name    | rank
watchdog | timeout | 0
"""
expect = "rank"
---*/
WITH dumps AS (
    SELECT count(*) > 0 AS there FROM collective_statement WHERE origin = 'flight_recorder'
),

late AS (  -- ranks whose watchdog says that an operation of their own does not end
    SELECT rank FROM collective_statement WHERE origin = 'watchdog' AND pending
    UNION
    SELECT rank FROM events WHERE kind = 'watchdog' AND name = 'timeout' AND rank IS NOT NULL
),

quiet AS (  -- ranks whose watchdog lives and says that nothing of theirs is open
    SELECT s.rank
    FROM collective_statement AS s
    ANTI JOIN late AS l ON s.rank = l.rank
    WHERE s.origin = 'watchdog' AND s.statement = 'status'
    GROUP BY s.rank
    HAVING bool_and(coalesce(s.last_completed = s.last_enqueued, FALSE))
),

groups AS (
    SELECT
        origin, group_key, operation,
        max(called) AS most,
        min(called) AS least,
        coalesce(count(DISTINCT rank) >= max(size), FALSE) AS whole
    FROM nccl_progress
    WHERE called IS NOT NULL
    GROUP BY origin, group_key, operation
),

part AS (  -- every rank in each of its communicators, and whether it is behind or ahead of another there
    SELECT p.origin, p.group_key, p.operation, p.rank, p.called, p.settled, p.source, p.line, g.whole, p.called < g.most AS behind, p.called > g.least AS ahead
    FROM nccl_progress AS p
    INNER JOIN groups AS g
        ON p.origin = g.origin AND p.group_key = g.group_key AND p.operation IS NOT DISTINCT FROM g.operation
),

free AS (  -- ranks that wait for nobody
    SELECT p.rank
    FROM part AS p
    SEMI JOIN quiet AS q ON p.rank = q.rank
    GROUP BY p.rank
    HAVING bool_and(p.whole) AND NOT bool_or(p.ahead)
),

goes_on AS (  -- ranks whose file says something of them after their last call
    SELECT p.origin, p.rank
    FROM part AS p
    LEFT JOIN (
        SELECT rank, source, max(line) AS line FROM events WHERE kind = 'watchdog' GROUP BY rank, source
    ) AS e ON p.rank = e.rank AND p.source = e.source
    GROUP BY p.origin, p.rank
    HAVING p.origin = 'nccl_ras' OR coalesce(max(e.line) > max(p.line), FALSE)
),

calls AS (
    SELECT group_key, seq, rank, operation, signature, hint, size, sound
    FROM nccl_statement
    WHERE statement = 'call'
),

torn AS (
    SELECT group_key, min(seq) AS seq
    FROM (
        SELECT group_key, seq FROM calls
        GROUP BY group_key, seq
        HAVING count(DISTINCT signature) > 1
    ) AS unlike
    GROUP BY group_key
),

adrift AS (  -- calls of which NCCL's own counters disagree
    SELECT group_key, seq FROM calls
    GROUP BY group_key, seq
    HAVING count(DISTINCT hint) > 1
),

not_joined AS (
    SELECT
        b.rank, b.origin, b.group_key, b.called + 1 AS seq, b.operation,
        list(DISTINCT w.rank ORDER BY w.rank) AS waiters,
        bool_and(b.settled AND b.whole) AND bool_or(l.rank IS NOT NULL) AS proven
    FROM part AS b
    INNER JOIN part AS w
        ON
            b.origin = w.origin AND b.group_key = w.group_key AND b.operation IS NOT DISTINCT FROM w.operation
            AND w.called > b.called
    LEFT JOIN late AS l ON w.rank = l.rank
    ANTI JOIN torn AS t ON b.group_key = t.group_key
    WHERE b.behind
    GROUP BY b.rank, b.origin, b.group_key, b.called, b.operation
),

named AS (
    SELECT group_key, seq, min(operation) AS operation FROM calls GROUP BY group_key, seq
),

unlike AS (
    SELECT s.group_key, s.seq, s.rank, s.operation, s.signature, s.size, s.sound
    FROM calls AS s
    SEMI JOIN torn AS t ON s.group_key = t.group_key AND s.seq = t.seq
),

majority AS (
    SELECT group_key, signature AS usual, list(rank ORDER BY rank) AS ranks
    FROM unlike
    GROUP BY group_key, signature
    HAVING 2 * count(DISTINCT rank) > max(size)
),

mismatch AS (
    SELECT
        u.rank, 'nccl_log' AS origin, u.group_key, u.seq, u.operation, coalesce(m.ranks, []) AS waiters,
        -- A lost line shifts what follows, so that the call is one of the others' next; and the job stops at a real one.
        m.usual IS NOT NULL AND u.sound AND p.called < u.seq + 8 AND a.seq IS NULL
        AND EXISTS (SELECT 1 FROM late)
        AND NOT EXISTS (
            SELECT 1 FROM calls AS n
            WHERE
                n.group_key = u.group_key AND n.rank <> u.rank AND n.signature = u.signature
                AND n.seq BETWEEN u.seq + 1 AND u.seq + 8
        ) AS proven,
        u.signature || coalesce(' where the others have ' || m.usual, '') AS detail
    FROM unlike AS u
    INNER JOIN nccl_progress AS p ON p.origin = 'nccl_log' AND u.group_key = p.group_key AND u.rank = p.rank
    LEFT JOIN majority AS m ON u.group_key = m.group_key
    LEFT JOIN adrift AS a ON u.group_key = a.group_key AND a.seq = u.seq
    WHERE u.signature IS DISTINCT FROM m.usual
)

SELECT
    n.rank, 'not joined' AS reason, n.origin, n.group_key, n.seq, coalesce(n.operation, o.operation) AS operation, n.waiters,
    n.proven AND f.rank IS NOT NULL AND g.rank IS NOT NULL AND a.seq IS NULL AS proven,
    CASE n.origin WHEN 'nccl_ras' THEN 'RAS counts fewer of them on it' ELSE 'it did not make the call' END AS detail
FROM not_joined AS n
LEFT JOIN named AS o ON n.group_key = o.group_key AND n.seq = o.seq AND n.origin = 'nccl_log'
LEFT JOIN free AS f ON n.rank = f.rank
LEFT JOIN goes_on AS g ON n.rank = g.rank AND n.origin = g.origin
LEFT JOIN adrift AS a ON n.group_key = a.group_key AND a.seq = n.seq - 1 AND n.origin = 'nccl_log'
WHERE NOT (SELECT there FROM dumps)
UNION ALL
SELECT rank, 'mismatch', origin, group_key, seq, operation, waiters, proven, detail
FROM mismatch
WHERE NOT (SELECT there FROM dumps)
ORDER BY group_key, rank, origin
