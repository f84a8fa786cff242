/*---
title    = "Enough memory was reserved, only not in one piece"
doc      = "The allocator held at least as much unused memory as was asked for, and could not serve the request: fragmentation rather than exhaustion."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "{asked} B asked while {unused} B lay reserved but unused"
[returns]
rank = "INTEGER"
asked = "BIGINT"
unused = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "4 GB asked, 5 GB unused, in either wording"
given.events = """
kind | name   | rank | bytes | detail                                            | line
oom  | device | 1    | 4000  | {"unallocated": 5000, "free": 3900}               | 5
oom  | device | 2    | 4000  | {"reserved_1": 9000, "allocated_1": 1000}         | 6
"""
expect = """
rank | asked | unused | line
1    | 4000  | 5000   | 5
2    | 4000  | 8000   | 6
"""
[[case]]
name = "hardly anything unused, or nothing said of it"
given.events = """
kind | name   | rank | bytes | detail
oom  | device | 1    | 4000  | {"unallocated": 100}
oom  | host   | 1    | 4000  |
"""
expect = "rank"
---*/
WITH refused AS (
    SELECT
        rank, bytes, time, source, line,
        coalesce(
            CAST(detail ->> '$.unallocated' AS BIGINT),
            CAST(detail ->> '$.reserved_1' AS BIGINT) - CAST(detail ->> '$.allocated_1' AS BIGINT)
        ) AS unused
    FROM events
    WHERE kind = 'oom'
)

SELECT rank, bytes AS asked, unused, time, source, line
FROM refused
WHERE unused >= bytes
ORDER BY time NULLS LAST, source, line
