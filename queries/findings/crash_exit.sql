/*---
title    = "A process ended with an error code or by a signal"
doc      = "What launchers say of exit codes. The launcher stops the other processes itself (SIGTERM, which counts only where no process ended otherwise), and DeepSpeed's exit line quotes the command started last, so a rank is named only where the launcher states it for a process that it did not stop. A process that says itself that a signal ends it counts too, unless its file goes on for several steps: then it was a helper's; so does a fault that the kernel reports of a process of a rank."
fault    = "crash"
severity = "fault"
reads    = ["events", "metrics", "run_summary", "stop"]
summary  = "a process{whose} ended with code {code}{named}"
[params]
went_on = { type = "BIGINT", default = 2, doc = "Steps in the same file after a signal that buffered output alone may bring." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
code = "BIGINT"
named = "VARCHAR"
whose = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "the table of the launcher names rank 1; the others were stopped by it"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role    | rank | code | message | line
exit | cascade | 0    | -15  | SIGTERM | 3
exit | root    | 1    | -11  | SIGSEGV | 9
"""
expect = """
rank | culprit | code | line
1    | true    | -11  | 9
"""
[[case]]
name = "an exit line without a rank names nobody"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | rank | code | message | line
exit | root |      | -9   | killed  | 3
"""
expect = """
rank | culprit | code | line
     | false   | -9   | 3
"""
[[case]]
name = "stopped from outside: its codes are the stop's"
given.run_summary = """
world_size
2
"""
given.stop = """
line
7
"""
given.events = """
kind | role    | rank | code | line
exit | symptom | 1    | 1    | 9
"""
expect = "rank | culprit | code"
[[case]]
name = "the kernel reports a segmentation fault of rank 6, and one of another program"
given.run_summary = """
world_size
8
"""
given.events = """
kind   | role    | source | rank | code | name     | after_step | line | detail
signal | root    | dmesg  | 6    | 11   | segfault | 30         | 1    | {"library": "libnccl.so.2"}
signal | root    | dmesg  |      | 11   | segfault |            | 2    |
exit   | symptom | log    |      | -11  |          | 30         | 9    |
"""
expect = """
rank | culprit | code | step | line
6    | true    | -11  | 31   | 1
     | false   | -11  | 31   | 9
"""
[[case]]
name = "all is well"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role     | rank | code | line
exit | progress | 0    | 0    | 3
exit | cascade  | 1    | -15  | 4
"""
expect = "rank | culprit | code"
[[case]]
name = "a rank that only lost its peer is no culprit"
given.run_summary = """
world_size
4
"""
given.events = """
kind      | role    | rank | code | name         | line
exception | cascade | 0    |      | RuntimeError | 3
exit      | symptom | 0    | 1    |              | 9
exit      | symptom | 2    | -9   | SIGKILL      | 8
"""
expect = """
rank | culprit | code
2    | true    | -9
0    | false   | 1
"""
[[case]]
name = "a fatal error of the interpreter, and one of a helper that training outlived"
given.run_summary = """
world_size
2
"""
given.metrics = """
source | step
log    | 30
"""
given.events = """
kind   | role    | source | rank | code | name               | after_step | line
signal | symptom | log    | 1    | -11  | Segmentation fault | 30         | 99
signal | symptom | log    |      | -6   | Aborted            | 4          | 9
signal | symptom | log    |      | -9   | Killed             |            | 1
"""
expect = """
rank | culprit | code | line
1    | true    | -11  | 99
"""
---*/
WITH followers AS (  -- ranks that complained of a peer, and of nothing of their own
    SELECT rank
    FROM events
    WHERE kind = 'exception' AND rank IS NOT NULL
    GROUP BY rank
    HAVING bool_and(role = 'cascade')
),

reached AS (
    SELECT run_id, source, max(step) AS last_step FROM metrics GROUP BY run_id, source
),

ends AS (
    SELECT e.rank IN (SELECT rank FROM followers) AS followed, e.rank, CASE WHEN e.kind = 'signal' THEN -abs(e.code) ELSE e.code END AS code, e.name, e.detail ->> '$.library' AS library, e.message, e.time, e.source, e.line, coalesce(e.step, e.after_step + 1) AS step
    FROM events AS e
    LEFT JOIN reached AS r ON e.kind = 'signal' AND e.run_id = r.run_id AND e.source = r.source
    WHERE
        e.code <> 0 AND e.role IN ('root', 'symptom') AND NOT EXISTS (SELECT 1 FROM stop)
        AND (e.kind = 'exit' OR (e.kind = 'signal' AND (e.code < 0 OR e.rank IS NOT NULL) AND coalesce(r.last_step - coalesce(e.after_step, 0), 0) <= $went_on))
)

SELECT
    e.rank,
    e.rank IS NOT NULL AND NOT e.followed AND count(DISTINCT e.rank) OVER () < coalesce(s.world_size, 1 << 30) AS culprit,
    e.code,
    coalesce(' (' || nullif(e.name, '') || coalesce(' in ' || e.library, '') || ')', '') AS named,
    CASE WHEN e.rank IS NOT NULL AND NOT e.followed THEN ' of rank ' || e.rank ELSE '' END AS whose,
    e.step, e.time, e.source, e.line,
    coalesce(e.message, '') AS text
FROM ends AS e
CROSS JOIN run_summary AS s
WHERE e.code NOT IN (-15, 143) OR NOT EXISTS (SELECT 1 FROM ends AS o WHERE o.code NOT IN (-15, 143))
ORDER BY e.rank IS NULL, e.time NULLS LAST, e.line
