/*---
title = "Causes, symptoms and what followed, over time"
doc = "The first event of each kind, name, rank and role that has a time; causes first where there are more than fit."
reads = ["events"]
[params]
most = { type = "INTEGER", default = 300, doc = "Events at most." }
[returns]
time = "BIGINT"
rank = "INTEGER"
role = "VARCHAR"
kind = "VARCHAR"
name = "VARCHAR"
message = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "progress is left out, repetitions too"
given.events = """
time | rank | role     | kind      | name       | message | line
20   | 1    | root     | signal    | SIGKILL    | killed  | 7
30   | 0    | cascade  | exception | DistError  | closed  | 8
31   | 0    | cascade  | exception | DistError  | closed  | 9
10   | 0    | progress | spawn     |            |         | 1
     | 0    | root     | exception | ValueError |         | 2
"""
expect = """
time | rank | role    | kind      | name      | line
20   | 1    | root    | signal    | SIGKILL   | 7
30   | 0    | cascade | exception | DistError | 8
"""
---*/
WITH firsts AS (
    SELECT
        min(time) AS time,
        rank,
        role,
        kind,
        name,
        left(arg_min(message, time), 200) AS message,
        arg_min(source, time) AS source,
        arg_min(line, time) AS line
    FROM events
    WHERE role IN ('root', 'symptom', 'cascade') AND time IS NOT NULL
    GROUP BY rank, role, kind, name
),

chosen AS (
    SELECT time, rank, role, kind, name, message, source, line
    FROM firsts
    ORDER BY CASE role WHEN 'root' THEN 0 WHEN 'symptom' THEN 1 ELSE 2 END, time, rank
    LIMIT $most
)

SELECT time, rank, role, kind, name, message, source, line
FROM chosen
ORDER BY time, rank, kind, name
