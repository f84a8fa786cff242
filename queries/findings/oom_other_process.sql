/*---
title    = "Another process held memory of the device"
doc      = "When the allocation was refused, at least a tenth of the device's memory was neither free nor this process's own: another process, or several ranks on one device."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "{others} B of the device's {total} B belonged to others"
[returns]
rank = "INTEGER"
others = "BIGINT"
total = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "5 of 10 belong to others"
given.events = """
kind | name   | rank | detail                                                | line
oom  | device | 1    | {"total": 10000, "free": 1000, "process": 4000}       | 5
"""
expect = """
rank | others | total | line
1    | 5000   | 10000 | 5
"""
[[case]]
name = "all of it is the rank's own, or nothing is said of it"
given.events = """
kind | name   | rank | detail
oom  | device | 1    | {"total": 10000, "free": 1000, "process": 8900}
oom  | device | 1    | {"total": 10000, "free": 1000}
"""
expect = "rank"
---*/
WITH sizes AS (
    SELECT
        rank, time, source, line,
        CAST(detail ->> '$.total' AS BIGINT) AS total,
        CAST(detail ->> '$.free' AS BIGINT) AS free,
        CAST(detail ->> '$.process' AS BIGINT) AS own
    FROM events
    WHERE kind = 'oom' AND name = 'device'
)

SELECT rank, total - free - own AS others, total, time, source, line
FROM sizes
WHERE total - free - own >= 0.1 * total
ORDER BY time NULLS LAST, source, line
