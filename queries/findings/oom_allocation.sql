/*---
title    = "An allocation was refused"
doc      = "Records that say an allocation was refused, on the device, on the host, in shared or in pinned memory, with what was asked for, what was free and what the allocator kept unused. The earliest counts, with the ranks that report the same within a minute; where every rank reports it, nobody is named."
fault    = "oom"
severity = "fault"
weight   = 3
confidence = "high"
reads    = ["events", "run_summary"]
summary  = "{kind} memory refused on rank {ranks}: {asked} B asked, {free} B free, {unused} B reserved but unused"
[params]
together = { type = "BIGINT", default = 60000000000, doc = "Refusals within this many ns count as one happening." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
kind = "VARCHAR"
asked = "BIGINT"
free = "BIGINT"
unused = "BIGINT"
total = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "rank 1 of 2"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | rank | name | bytes | after_step | line
oom  | root | 1    | host | 1024  | 11         | 9
"""
expect = """
rank | culprit | step | kind | asked | line
1    | true    | 12   | host | 1024  | 9
"""
[[case]]
name = "what was free and what was kept, in bytes"
given.run_summary = """
world_size
4
"""
given.events = """
kind | role | rank | name   | bytes | line | detail
oom  | root | 1    | device | 4096  | 9    | {"free":1024,"unallocated":2097152,"total":1073741824}
"""
expect = """
rank | culprit | kind   | asked | free | unused  | total      | line
1    | true    | device | 4096  | 1024 | 2097152 | 1073741824 | 9
"""
[[case]]
name = "every rank: nobody is named"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | rank | name   | bytes | line
oom  | root | 0    | device | 1024  | 3
oom  | root | 1    | device | 1024  | 9
"""
expect = """
rank | culprit | kind   | asked | line
0    | false   | device | 1024  | 3
1    | false   | device | 1024  | 9
"""
[[case]]
name = "other events"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role | rank | line
exception | root | 0    | 3
"""
expect = "rank | culprit | step | kind | asked"
---*/
WITH refused AS (
    SELECT
        rank, name AS kind, bytes, detail, time, source, line, message, coalesce(step, after_step + 1) AS step,
        row_number() OVER (PARTITION BY coalesce(rank, -1) ORDER BY time NULLS LAST, source, line, part) AS place
    FROM events
    WHERE kind = 'oom'
),

first_one AS (
    SELECT min(time) AS time FROM refused
),

together AS (
    SELECT
        r.rank, r.step, r.kind, r.bytes, r.time, r.source, r.line, r.message,
        CAST(coalesce(r.detail ->> '$.free', r.detail ->> '$.free_1') AS BIGINT) AS free,
        coalesce(
            CAST(r.detail ->> '$.unallocated' AS BIGINT),
            CAST(r.detail ->> '$.reserved_1' AS BIGINT) - CAST(r.detail ->> '$.allocated_1' AS BIGINT)
        ) AS unused,
        CAST(r.detail ->> '$.total' AS BIGINT) AS total
    FROM refused AS r
    CROSS JOIN first_one AS f
    WHERE r.place = 1 AND (r.time IS NULL OR f.time IS NULL OR r.time - f.time <= $together)
)

SELECT
    t.rank,
    t.rank IS NOT NULL AND (
        count(DISTINCT t.rank) OVER () < s.world_size
        OR s.world_size = 1
        OR (s.world_size IS NULL AND count(DISTINCT t.rank) OVER () = 1)
    ) AS culprit,
    t.step, t.kind,
    t.bytes AS asked,
    t.free, t.unused, t.total,
    t.time, t.source, t.line,
    t.message AS text
FROM together AS t
CROSS JOIN run_summary AS s
ORDER BY t.rank NULLS LAST
