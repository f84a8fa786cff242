/*---
title    = "An exception ended the run"
doc      = "Ranks that raised an exception of their own: not a closed connection, not a watchdog, not a signal sent by the launcher, and none of a rank that had run out of time in a collective before: it waited for another. The earliest exception counts, with the ranks that raised the same within a minute; where most ranks raised it, or another rank raised something else that may have come before, nobody is named, because then the rank that did not may have brought it about. An exception after which its writer went on for several steps was caught: it counts only where nothing else explains that a process failed, and then names nobody. The same holds for one that stands before all steps of its writer, which may have been caught, while nothing else failed; and where every process ended well, none counts."
fault    = "crash"
severity = "fault"
weight   = 2
confidence = "high"
reads    = ["events", "outlived", "rank_progress", "run_summary", "stop"]
summary  = "{name} ({who}): {message}"
[params]
together = { type = "BIGINT", default = 60000000000, doc = "Exceptions of the same class within this many ns count as one happening." }
clocks = { type = "BIGINT", default = 1000000000, doc = "What stamps of two files may differ by, in ns, without saying which came first." }
went_on = { type = "BIGINT", default = 2, doc = "Steps in the same file after an exception that buffered output alone may bring; after more of them it was caught." }
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
name = "two ranks raised different exceptions into files of their own, and no stamp says which came first: nobody is named"
given.run_summary = """
world_size
4
"""
given.events = """
kind      | role | rank | name       | message | source | line
exception | root | 1    | ValueError | one     | a      | 3
exception | root | 2    | KeyError   | two     | b      | 3
"""
expect = """
rank | culprit | name       | line
1    | false   | ValueError | 3
"""
[[case]]
name = "stamps do, or one file holds both"
given.run_summary = """
world_size
4
"""
given.events = """
kind      | role | rank | name       | message | source | line | time
exception | root | 1    | ValueError | one     | a      | 3    | 9000000000
exception | root | 2    | KeyError   | two     | b      | 3    | 3000000000
exception | root | 3    | TypeError  | three   | b      | 9    |
"""
expect = """
rank | culprit | name     | line
2    | true    | KeyError | 3
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
name = "a process caught the signal of the scheduler, and ended with an error"
given.run_summary = """
world_size
2
"""
given.stop = """
line
7
"""
given.events = """
kind      | role | rank | name         | message | line
exception | root | 1    | RuntimeError | SIGTERM | 9
"""
expect = "rank | culprit | step | name | message"
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
[[case]]
name = "an import that was tried and given up: training went on, nothing failed"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps
log    | 9    | 26
"""
given.rank_progress = """
rank | last_step
0    | 30
1    | 30
"""
given.events = """
kind      | role | source | rank | name                | message              | after_step | line
exception | root | log    | 1    | ModuleNotFoundError | No module named apex | 4          | 9
"""
expect = "rank | culprit | step | name | message"
[[case]]
name = "a caught exception on one rank, a process that failed later: nobody is named"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps
log    | 9    | 26
"""
given.events = """
kind      | role    | source | rank | name    | message | code | after_step | line
exception | root    | log    | 1    | OSError | retry   |      | 4          | 9
exit      | symptom | log    |      |         |         | -9   | 30         | 99
"""
expect = """
rank | culprit | step | name    | line
1    | false   | 5    | OSError | 9
"""
[[case]]
name = "a caught exception on rank 0, and the one that ended the run on rank 1"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps
log    | 9    | 26
"""
given.events = """
kind      | role | source | rank | name       | message | after_step | line
exception | root | log    | 0    | OSError    | retry   | 4          | 9
exception | root | log    | 1    | ValueError | bad     | 30         | 99
"""
expect = """
rank | culprit | step | name       | line
1    | true    | 31   | ValueError | 99
"""
[[case]]
name = "rank 1 ran out of time first, rank 2 did not: rank 2 may have kept it waiting"
given.run_summary = """
world_size
4
"""
given.events = """
kind      | role    | name       | source | rank | message | line
watchdog  | symptom | timeout    | log    | 1    |         | 5
exception | root    | ValueError | log    | 1    | cleanup | 9
exception | root    | OSError    | log    | 2    | gone    | 10
"""
expect = """
rank | culprit | name    | line
2    | true    | OSError | 10
"""
[[case]]
name = "every process ended well"
given.run_summary = """
world_size | end
2          | completed
"""
given.events = """
kind      | role | rank | name    | message | code | line | attempt
exception | root | 1    | OSError | retry   |      | 9    | 1
exit      |      | 0    |         |         | 0    | 99   | 1
exit      |      | 1    |         |         | 0    | 99   | 1
"""
expect = "rank | culprit | step | name | message"
[[case]]
name = "it stands before all steps of its rank, and no other process complains"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps | first
log    | 9    | 0     | true
"""
given.events = """
kind      | role | source | rank | name    | message | line
exception | root | log    | 1    | OSError | retry   | 9
"""
expect = """
rank | culprit | name    | line
1    | false   | OSError | 9
"""
[[case]]
name = "the same, and a process was killed: that follows from no exception"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps | first
log    | 9    | 0     | true
"""
given.events = """
kind      | role    | source | rank | name    | message | code | line
exception | root    | log    | 1    | OSError | retry   |      | 9
exit      | symptom | log    |      |         |         | -9   | 99
"""
expect = """
rank | culprit | name    | line
1    | false   | OSError | 9
"""
[[case]]
name = "three of four raised it: the fourth may have brought it about"
given.run_summary = """
world_size
4
"""
given.events = """
kind      | role | rank | name      | message | line
exception | root | 0    | LinkError | gone    | 3
exception | root | 2    | LinkError | gone    | 4
exception | root | 3    | LinkError | gone    | 5
"""
expect = """
rank | culprit | name      | line
0    | false   | LinkError | 3
2    | false   | LinkError | 4
3    | false   | LinkError | 5
"""
---*/
WITH raised AS (
    SELECT
        e.rank, e.name, e.message, e.time, e.source, e.line, e.step, e.after_step, coalesce(e.attempt, 0) AS attempt,
        o.steps > $went_on AS caught,
        coalesce(o.first, FALSE) AS early
    FROM events AS e
    LEFT JOIN outlived AS o
        ON e.run_id = o.run_id AND e.source = o.source AND e.line = o.line AND e.part IS NOT DISTINCT FROM o.part
    WHERE
        e.kind = 'exception' AND e.role = 'root' AND NOT EXISTS (SELECT 1 FROM stop)  -- then every error follows from it
        AND NOT EXISTS (
            SELECT 1
            FROM run_summary AS s
            INNER JOIN events AS w ON w.kind = 'exit' AND w.code = 0
            WHERE s."end" = 'completed' AND coalesce(w.attempt, 0) <= coalesce(e.attempt, 0)
        )
        AND NOT EXISTS (
            SELECT 1
            FROM events AS w
            WHERE
                w.kind = 'watchdog' AND w.name = 'timeout' AND w.rank = e.rank AND w.source = e.source AND w.line < e.line
                AND w.attempt IS NOT DISTINCT FROM e.attempt
        )
),

-- Something else says that a process failed: an exit code, or a peer that lost its connection.
failure AS (
    SELECT
        bool_or(kind = 'exit' AND code <> 0 OR kind = 'exception' AND role = 'cascade') AS seen,
        -- Whom SIGKILL, SIGSEGV or SIGBUS ended did not end by an exception.
        bool_or(
            (kind = 'exit' AND code NOT IN (0, -9, 137, -11, 139, -7, 135)) OR (kind = 'exception' AND role = 'cascade')
            OR kind IN ('watchdog', 'peer_lost')
        ) AS felt,
        (SELECT count(*) FROM raised WHERE caught IS NOT TRUE) AS fatal
    FROM events
),

fatal AS (
    SELECT
        r.rank, r.name, r.message, r.time, r.source, r.line, r.step, r.after_step, r.attempt,
        coalesce(r.caught, FALSE) AS caught,
        r.early AND NOT coalesce(f.felt, FALSE) AS early
    FROM raised AS r
    CROSS JOIN failure AS f
    WHERE r.caught IS NOT TRUE OR (f.seen AND f.fatal = 0)
),

own AS (
    SELECT
        e.rank, e.name, e.message, e.time, e.source, e.line, e.attempt, e.caught, e.early,
        -- A step line may stand behind the traceback: standard output is buffered, standard error is not.
        coalesce(e.step, CASE WHEN p.last_step - e.after_step > 1 THEN e.after_step ELSE coalesce(p.last_step, e.after_step) END + 1)
            AS step,
        row_number() OVER (PARTITION BY coalesce(e.rank, -1), e.name ORDER BY e.attempt, e.time NULLS LAST, e.source, e.line)
            AS place
    FROM fatal AS e
    LEFT JOIN rank_progress AS p ON e.rank = p.rank
),

first_one AS (
    SELECT name, time, rank, source, attempt
    FROM own
    ORDER BY attempt, time NULLS LAST, source, line
    LIMIT 1
),

-- Another rank raised something else, and neither a stamp nor a common file says which came first.
contest AS (
    SELECT count(*) > 0 AS open
    FROM own AS o
    INNER JOIN first_one AS f
        ON
            o.attempt = f.attempt AND o.rank <> f.rank AND o.name <> f.name AND o.source <> f.source
            AND coalesce(o.time - f.time <= $clocks, TRUE)
),

together AS (
    SELECT o.rank, o.step, o.name, o.message, o.time, o.source, o.line, o.caught, o.early
    FROM own AS o
    INNER JOIN first_one AS f ON o.name = f.name
    WHERE o.place = 1 AND (o.time IS NULL OR f.time IS NULL OR o.time - f.time <= $together)
)

SELECT
    t.rank,
    t.rank IS NOT NULL AND NOT t.caught AND NOT c.open AND (NOT t.early OR s.world_size = 1) AND (
        2 * count(DISTINCT t.rank) OVER () <= s.world_size
        OR s.world_size = 1
        OR (s.world_size IS NULL AND count(DISTINCT t.rank) OVER () = 1)
    ) AS culprit,
    t.step, t.name, t.message, t.time, t.source, t.line,
    t.name || ': ' || coalesce(t.message, '') AS text
FROM together AS t
CROSS JOIN run_summary AS s
CROSS JOIN contest AS c
ORDER BY t.rank
