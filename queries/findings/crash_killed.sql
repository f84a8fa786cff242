/*---
title    = "A process was killed by SIGKILL"
doc      = "An exit code of -9 or 137, a shell's Killed, or a worker of a data loader that was killed: nobody catches that signal, so it came from the kernel's OOM killer, a container runtime, a scheduler or a person. Where the run was stopped from outside, it only follows from that."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "exit code {code}: SIGKILL"
[returns]
rank = "INTEGER"
code = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "killed"
given.events = """
kind | role    | rank | code | line
exit | symptom | 1    | -9   | 5
exit | symptom | 2    | 1    | 6
data_worker | symptom | 3 | -9 | 7
"""
expect = """
rank | code | line
1    | -9   | 5
3    | -9   | 7
"""
[[case]]
name = "ended otherwise"
given.events = """
kind | role    | rank | code
exit | symptom | 1    | -11
"""
expect = "rank"
---*/
SELECT rank, code, time, source, line
FROM events
WHERE
    kind IN ('exit', 'signal', 'data_worker') AND code IN (-9, 137)
    AND NOT EXISTS (SELECT 1 FROM events AS o WHERE o.kind = 'external_stop')
ORDER BY time NULLS LAST, source, line
