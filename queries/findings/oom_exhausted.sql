/*---
title    = "The device was full"
doc      = "An allocation was refused although the allocator held less unused memory than was asked for: the device was full with live data."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "{asked} B asked with only {unused} B unused and {free} B free"
[returns]
rank = "INTEGER"
asked = "BIGINT"
unused = "BIGINT"
free = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "neither free nor unused memory suffices"
given.events = """
kind | name   | rank | bytes | detail                             | line
oom  | device | 1    | 4000  | {"unallocated": 500, "free": 900}  | 5
"""
expect = """
rank | asked | unused | free | line
1    | 4000  | 500    | 900  | 5
"""
[[case]]
name = "fragmented, or without numbers"
given.events = """
kind | name   | rank | bytes | detail
oom  | device | 1    | 4000  | {"unallocated": 5000, "free": 900}
oom  | device | 1    |       |
"""
expect = "rank"
---*/
WITH refused AS (
    SELECT
        rank, bytes, time, source, line,
        CAST(coalesce(detail ->> '$.free', detail ->> '$.free_1') AS BIGINT) AS free,
        coalesce(
            CAST(detail ->> '$.unallocated' AS BIGINT),
            CAST(detail ->> '$.reserved_1' AS BIGINT) - CAST(detail ->> '$.allocated_1' AS BIGINT)
        ) AS unused
    FROM events
    WHERE kind = 'oom' AND name = 'device'
)

SELECT rank, bytes AS asked, unused, free, time, source, line
FROM refused
WHERE unused < bytes AND free < bytes
ORDER BY time NULLS LAST, source, line
