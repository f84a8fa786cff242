/*---
title    = "A process ended by a fault of native code"
doc      = "Exit codes or signals that a library, a driver or the device brings about: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, also as 128 plus the signal. Where an exception of its own, a refused allocation or a watchdog was reported, the code is what remains of that and is left out."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "a process ended with code {code}"
[returns]
rank = "INTEGER"
code = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "a segmentation fault, by signal and in a shell's words"
given.events = """
kind | rank | code | line
exit | 1    | -11  | 5
exit | 2    | 139  | 6
"""
expect = """
rank | code | line
1    | -11  | 5
2    | 139  | 6
"""
[[case]]
name = "an exception, a kill, an abort after a watchdog"
given.events = """
kind     | rank | code | line
exit     | 1    | 1    | 5
exit     | 2    | -9   | 6
exit     | 3    | -6   | 7
watchdog | 3    |      | 4
"""
expect = "rank"
[[case]]
name = "a worker of a data loader, and the exception that tells of it"
given.events = """
kind        | rank | code | source | line
data_worker | 1    | -11  | log    | 5
exception   | 1    |      | log    | 5
"""
expect = """
rank | code | line
1    | -11  | 5
"""
---*/
SELECT rank, code, time, source, line
FROM events
WHERE
    (
        (kind IN ('exit', 'signal', 'data_worker') AND code IN (-4, -6, -7, -8, -11, 132, 134, 135, 136, 139))
        OR (kind = 'signal' AND code IN (4, 6, 7, 8, 11))
    )
    AND NOT EXISTS (
        SELECT 1 FROM events AS w
        WHERE
            w.kind IN ('watchdog', 'oom')
            OR (w.kind = 'exception' AND w.role = 'root' AND (w.source, w.line) NOT IN (SELECT (d.source, d.line) FROM events AS d WHERE d.kind = 'data_worker'))
    )
ORDER BY time NULLS LAST, source, line
