/*---
title    = "A process ended by SIGTERM, and nothing says who sent it"
doc      = "An exit code of -15 or 143 beside none of another kind, or a worker of a data loader that was terminated. No process sends it to itself by an error: a scheduler, a container runtime, a memory daemon of the host or a person did. Launchers send it too, after they saw another process fail."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} records of SIGTERM"
[returns]
rank = "INTEGER"
code = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "nothing else ended"
given.events = """
kind | role    | rank | code | line
exit | symptom | 1    | -15  | 5
"""
expect = """
rank | code | line
1    | -15  | 5
"""
[[case]]
name = "another process failed"
given.events = """
kind | role    | rank | code | line
exit | symptom | 1    | -15  | 5
exit | symptom | 2    | -11  | 4
"""
expect = "rank"
---*/
SELECT rank, code, time, source, line
FROM events
WHERE
    ((kind = 'exit' AND role <> 'cascade') OR kind = 'data_worker') AND code IN (-15, 143)
    AND NOT EXISTS (
        SELECT 1 FROM events AS o
        WHERE o.kind IN ('exit', 'signal') AND o.role <> 'cascade' AND o.code NOT IN (0, -15, 143) AND NOT (o.code = 1 AND events.kind = 'data_worker')
    )
ORDER BY time NULLS LAST, source, line
