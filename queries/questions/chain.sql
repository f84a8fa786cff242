/*---
title = "The chain of causes: what happened in which order, and what its place in it is"
doc   = "Recognised happenings that are a root candidate, a symptom or a cascade, like ones of one kind taken together, in the order of their times. A watchdog's message stands at the time at which the collective began (its own time minus its running time). What has no time stands behind what has one, in the order of its file: an order finer than the clocks is not claimed."
reads = ["events"]
[returns]
time = "BIGINT"
clock = "VARCHAR"
role = "VARCHAR"
kind = "VARCHAR"
name = "VARCHAR"
ranks = "INTEGER[]"
n = "BIGINT"
step = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "an exception, the peers that noticed, and a watchdog that began to wait in between"
given.events = """
kind      | role     | name       | rank | time         | duration     | line | message
watchdog  | symptom  | timeout    | 0    | 700000000000 | 600000000000 | 9    | timed out
exception | root     | ValueError | 1    | 90000000000  |              | 3    | bad token
peer_lost | cascade  | closed     | 2    | 91000000000  |              | 5    | closed
peer_lost | cascade  | closed     | 3    | 92000000000  |              | 6    | closed
spawn     | context  |            | 0    | 1            |              | 1    | started
"""
expect = """
time         | role    | kind      | name       | ranks  | n | line
90000000000  | root    | exception | ValueError | [1]    | 1 | 3
91000000000  | cascade | peer_lost | closed     | [2, 3] | 2 | 5
100000000000 | symptom | watchdog  | timeout    | [0]    | 1 | 9
"""
---*/
WITH begun AS (
    SELECT
        role, kind, name, rank, clock, source, line, message,
        coalesce(step, after_step + 1) AS step,
        time - CASE WHEN kind = 'watchdog' THEN coalesce(duration, 0) ELSE 0 END AS time
    FROM events
    WHERE role IN ('root', 'symptom', 'cascade')
)

SELECT
    min(time) AS time,
    arg_min(clock, time) AS clock,
    role, kind, name,
    list(DISTINCT rank ORDER BY rank) FILTER (WHERE rank IS NOT NULL) AS ranks,
    count(*) AS n,
    min(step) AS step,
    coalesce(arg_min(source, time), min(source)) AS source,
    coalesce(arg_min(line, time), min(line)) AS line,
    coalesce(arg_min(message, time), min(message)) AS text
FROM begun
GROUP BY role, kind, name
ORDER BY min(time) NULLS LAST, source, line
LIMIT 60
