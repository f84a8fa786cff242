/*---
title = "Ranks that have nothing open, so wait for nobody in any recorded operation"
doc   = """
A cut dump that states no counters proves no such thing. Nor does a log, unless there is only one process group: a
rank states its counters of one group there and may wait in another. On gloo a failed operation looks like a finished
one, so the rank's newest operation must be known to have ended well: another rank went on after it, and nobody is
still in it."""
reads = ["collective_statement", "rank_in_group", "rank_head", "open_operation", "group_member"]
materialize = true
[returns]
rank = "INTEGER"
[[case]]
name = "gloo: rank 1 ended well, since rank 0 went on; rank 2 may have failed"
given.collective_statement = """
statement | origin          | group_key | rank | record | seq | pending | partial
entry     | flight_recorder | a         | 0    | 5      | 5   | false   | false
entry     | flight_recorder | a         | 0    | 6      | 6   | true    | false
entry     | flight_recorder | a         | 1    | 5      | 5   | false   | false
entry     | flight_recorder | b         | 2    | 9      | 9   | false   | false
entry     | flight_recorder | b         | 3    | 9      | 9   | false   | false
"""
given.rank_in_group = """
group_key | rank | gloo | partial
a         | 0    | true | false
a         | 1    | true | false
b         | 2    | true | false
b         | 3    | true | false
"""
given.rank_head = """
rank | group_key | seq
0    | a         | 6
"""
expect = """
rank
1
"""
[[case]]
name = "a log's counters say that nothing is open only where there is one group"
given.collective_statement = """
statement | origin   | group_key | rank | last_enqueued | last_completed | partial
status    | watchdog | a         | 0    | 4             | 4              | false
"""
given.rank_in_group = """
group_key | rank | gloo  | partial | counter
a         | 0    | false | false   | 4
"""
given.group_member = """
group_key | rank
a         | 0
b         | 1
"""
expect = """
rank
"""
---*/
WITH last_call AS (
    SELECT
        rank,
        arg_max(group_key, record) AS group_key,
        arg_max(seq, record) AS seq,
        arg_max(peer IS NOT NULL, record) AS transfer
    FROM collective_statement
    WHERE statement = 'entry'
    GROUP BY rank
),

went_on AS (  -- ranks that recorded something after a given operation of theirs
    SELECT DISTINCT s.group_key, s.seq, s.rank
    FROM collective_statement AS s
    SEMI JOIN last_call AS l ON s.group_key = l.group_key AND s.seq = l.seq
    INNER JOIN last_call AS own ON s.rank = own.rank AND (s.group_key <> own.group_key OR s.seq <> own.seq)
    WHERE s.statement = 'entry' AND s.peer IS NULL AND NOT s.pending
),

well AS (
    SELECT l.rank
    FROM last_call AS l
    SEMI JOIN went_on AS w ON l.group_key = w.group_key AND l.seq = w.seq AND l.rank <> w.rank
    ANTI JOIN open_operation AS o ON l.group_key = o.group_key AND l.seq = o.seq AND o.pending
    WHERE NOT l.transfer
),

recorded AS (
    SELECT rank, bool_or(origin = 'flight_recorder') AS dump
    FROM collective_statement
    WHERE statement IN ('entry', 'status')
    GROUP BY rank
),

size AS (SELECT count(DISTINCT group_key) AS groups FROM group_member)

SELECT r.rank
FROM rank_in_group AS r
INNER JOIN recorded AS d ON r.rank = d.rank
CROSS JOIN size AS s
LEFT JOIN well AS w ON r.rank = w.rank
ANTI JOIN rank_head AS h ON r.rank = h.rank
GROUP BY r.rank
HAVING
    NOT bool_and(r.partial AND r.counter IS NULL)
    AND (bool_or(d.dump) OR max(s.groups) = 1)
    AND (NOT bool_or(coalesce(r.gloo, FALSE)) OR (bool_or(w.rank IS NOT NULL) AND NOT bool_or(r.partial)))
ORDER BY r.rank
