/*---
title    = "An exception ended the run"
doc      = "Ranks that raised an exception of their own: not a closed connection, not a watchdog, not a signal sent by the launcher. The earliest exception counts, with the ranks that raised the same within a minute; where every rank raised it, nobody is named."
fault    = "crash"
severity = "fault"
weight   = 2
confidence = "high"
reads    = ["events", "rank_progress", "run_summary"]
summary  = "{name} ({who}): {message}"
[params]
together = { type = "BIGINT", default = 60000000000, doc = "Exceptions of the same class within this many ns count as one happening." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
name = "VARCHAR"
message = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "the first exception of its own, not the peers' closed connections"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role    | rank | name         | message           | after_step | line
exception | cascade | 0    | RuntimeError | Connection closed | 8          | 3
exception | root    | 1    | ValueError   | bad token         | 8          | 9
"""
expect = """
rank | culprit | step | name       | message   | line
1    | true    | 9    | ValueError | bad token | 9
"""
[[case]]
name = "an exception in a file without steps: the step after the last that the rank printed elsewhere"
given.run_summary = """
world_size
2
"""
given.rank_progress = """
rank | last_step
1    | 8
"""
given.events = """
kind      | role | rank | name       | message   | line
exception | root | 1    | ValueError | bad token | 9
"""
expect = """
rank | culprit | step | name       | message   | line
1    | true    | 9    | ValueError | bad token | 9
"""
[[case]]
name = "every rank raised it: nobody is named"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role | rank | name       | message | line
exception | root | 0    | ValueError | fp16    | 3
exception | root | 1    | ValueError | fp16    | 9
"""
expect = """
rank | culprit | step | name       | message | line
0    | false   |      | ValueError | fp16    | 3
1    | false   |      | ValueError | fp16    | 9
"""
[[case]]
name = "only cascades"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role    | rank | name         | message           | line
exception | cascade | 0    | RuntimeError | Connection closed | 3
"""
expect = "rank | culprit | step | name | message"
---*/
WITH own AS (
    SELECT
        e.rank, e.name, e.message, e.time, e.source, e.line,
        -- A step line may stand behind the traceback: standard output is buffered, standard error is not.
        coalesce(e.step, CASE WHEN p.last_step - e.after_step > 1 THEN e.after_step ELSE coalesce(p.last_step, e.after_step) END + 1)
            AS step,
        row_number() OVER (PARTITION BY coalesce(e.rank, -1), e.name ORDER BY e.time NULLS LAST, e.source, e.line) AS place
    FROM events AS e
    LEFT JOIN rank_progress AS p ON e.rank = p.rank
    WHERE e.kind = 'exception' AND e.role = 'root'
),

first_one AS (
    SELECT name, time
    FROM own
    ORDER BY time NULLS LAST, source, line
    LIMIT 1
),

together AS (
    SELECT o.rank, o.step, o.name, o.message, o.time, o.source, o.line
    FROM own AS o
    INNER JOIN first_one AS f ON o.name = f.name
    WHERE o.place = 1 AND (o.time IS NULL OR f.time IS NULL OR o.time - f.time <= $together)
)

SELECT
    t.rank,
    t.rank IS NOT NULL AND (
        count(DISTINCT t.rank) OVER () < s.world_size
        OR s.world_size = 1
        OR (s.world_size IS NULL AND count(DISTINCT t.rank) OVER () = 1)
    ) AS culprit,
    t.step, t.name, t.message, t.time, t.source, t.line,
    t.name || ': ' || coalesce(t.message, '') AS text
FROM together AS t
CROSS JOIN run_summary AS s
ORDER BY t.rank
