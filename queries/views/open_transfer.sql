/*---
title = "Sends and receives that a rank has not finished, beside what the other side has open"
doc   = """
One row per rank, partner and direction. `unmet` says how the partner is known not to have come: by complete
histories of both, or because it has issued exactly the operations that this rank has finished, in a group of two.
False: it came. Null: cannot be told."""
reads = ["collective_statement", "rank_in_group", "group_member"]
materialize = true
[returns]
group_key = "VARCHAR"
rank = "INTEGER"
partner = "INTEGER"
operation = "VARCHAR"
seq = "BIGINT"
open = "BIGINT"
partner_open = "BIGINT"
unmet = "BOOLEAN"
record = "BIGINT"
time = "BIGINT"
frames = "VARCHAR"
source = "VARCHAR"
[[case]]
name = "a send that nobody receives, in a group of two"
given.collective_statement = """
group_key | statement | rank | record | seq | operation | peer | pending
a         | entry     | 3    | 70     | 8   | send      | 1    | true
a         | entry     | 3    | 75     | 9   | send      | 1    | true
"""
given.rank_in_group = """
group_key | rank | counter
a         | 3    | 9
a         | 5    | 7
"""
given.group_member = """
group_key | group_name | rank | group_rank | size | stated
a         | p          | 3    | 0          | 2    | true
a         | p          | 5    | 1          | 2    | true
"""
expect = """
group_key | rank | partner | operation | seq | open | partner_open | unmet
a         | 3    | 5       | send      | 8   | 2    | 0            | true
"""
[[case]]
name = "complete histories: the partner sent once, and it was received"
given.collective_statement = """
group_key | statement | rank | record | seq | operation | peer | pending
w         | entry     | 0    | 0      | 1   | recv      | 1    | false
w         | entry     | 0    | 1      | 2   | recv      | 1    | true
w         | entry     | 1    | 0      | 1   | send      | 0    | false
"""
given.rank_in_group = """
group_key | rank
w         | 0
w         | 1
"""
given.group_member = """
group_key | group_name | group_desc | rank | stated
w         | 0          | default_pg | 0    | false
w         | 0          | default_pg | 1    | false
"""
expect = """
group_key | rank | partner | operation | seq | open | partner_open | unmet
w         | 0    | 1       | recv      | 2   | 1    | 0            | true
"""
---*/
WITH transfer AS (
    SELECT
        s.group_key,
        s.rank,
        -- Without a list of members a number inside the group is a global rank only in the group of everybody.
        coalesce(m.rank, CASE WHEN w.everybody THEN s.peer END) AS partner,
        s.operation,
        s.seq,
        s.record,
        s.pending,
        s.time,
        s.frames,
        s.source
    FROM collective_statement AS s
    LEFT JOIN group_member AS m ON s.group_key = m.group_key AND s.peer = m.group_rank
    LEFT JOIN (
        SELECT group_key, bool_or(NOT stated AND (group_desc = 'default_pg' OR group_name = '0')) AS everybody
        FROM group_member
        GROUP BY group_key
    ) AS w ON s.group_key = w.group_key
    WHERE s.statement = 'entry' AND s.peer IS NOT NULL
),

history AS (  -- a dump that still holds the first record of its process holds them all
    SELECT rank, min(record) = 0 AND NOT coalesce(bool_or(partial), FALSE) AS complete
    FROM collective_statement
    WHERE statement = 'entry'
    GROUP BY rank
),

side AS (
    SELECT
        group_key,
        rank,
        partner,
        operation,
        count(DISTINCT seq) AS total,
        count(DISTINCT seq) FILTER (WHERE pending) AS open,
        min(seq) FILTER (WHERE pending) AS seq,
        min(record) FILTER (WHERE pending) AS record,
        min(time) FILTER (WHERE pending) AS time,
        arg_min(frames, record) FILTER (WHERE pending) AS frames,
        min(source) AS source
    FROM transfer
    GROUP BY group_key, rank, partner, operation
)

SELECT
    a.group_key,
    a.rank,
    a.partner,
    a.operation,
    a.seq,
    a.open,
    coalesce(b.open, 0) AS partner_open,
    CASE
        WHEN ha.complete AND hb.complete THEN a.total > coalesce(b.total, 0)
        WHEN m.size = 2 AND m.stated AND r.counter = a.seq - 1 THEN TRUE
    END AS unmet,
    a.record,
    a.time,
    a.frames,
    a.source
FROM side AS a
LEFT JOIN side AS b
    ON
        a.group_key = b.group_key
        AND a.partner = b.rank
        AND a.rank = b.partner
        AND a.operation <> b.operation
LEFT JOIN rank_in_group AS r ON a.group_key = r.group_key AND a.partner = r.rank
LEFT JOIN group_member AS m ON a.group_key = m.group_key AND a.rank = m.rank
LEFT JOIN history AS ha ON a.rank = ha.rank
LEFT JOIN history AS hb ON a.partner = hb.rank
WHERE a.open > 0
ORDER BY a.group_key, a.rank, a.partner, a.operation
