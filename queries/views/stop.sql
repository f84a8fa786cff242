/*---
title = "What says that a run was stopped from outside"
doc   = "A scheduler, a launcher or a process says that it was told to stop (a time limit, a preemption, an operator), and nothing of the run's own had failed before. An exception or an exit code that is known to follow is the stop's doing: a process may catch the signal and end with an error. Where the order is not known, the error stands. Of exit codes that follow, the word of a scheduler explains all, and a signal that a process only received explains 1: launchers speak late of a process that failed first."
reads = ["events"]
[returns]
run_id = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
message = "VARCHAR"
[[case]]
name = "the word of the scheduler, an exception of the handler that caught its signal, and the exit code"
given.events = """
kind          | role    | source | code | name         | line
external_stop | root    | log    |      |              | 7
exception     | root    | log    |      | RuntimeError | 9
exit          | symptom | log    | 1    |              | 12
"""
expect = """
source | line
log    | 7
"""
[[case]]
name = "a step is cancelled because a task failed"
given.events = """
kind          | role    | source | code | name | line
exit          | symptom | log    | 1    |      | 5
external_stop | root    | log    |      |      | 7
exit          | symptom | log    | 143  |      | 9
"""
expect = "source | line"
[[case]]
name = "a task failed; hours later the rest ran into the limit"
given.events = """
kind          | role    | source | code | name       | line
exit          | symptom | log    | 1    |            | 5
external_stop | root    | log    |      | TIME LIMIT | 7
"""
expect = "source | line"
[[case]]
name = "a signal that a launcher received: its own exit code follows, a crash of another process does not"
given.events = """
run_id | kind          | role    | source | code | name    | line
a      | external_stop | root    | log    |      | SIGTERM | 7
a      | exit          | symptom | log    | 1    |         | 9
b      | external_stop | root    | log    |      | SIGTERM | 7
b      | exit          | symptom | log    | -11  |         | 9
"""
expect = """
run_id | line
a      | 7
"""
[[case]]
name = "the agent of one host got a signal, and that of another ended with an error a little later, or before"
given.events = """
run_id | kind          | role    | source | code | name | time | clock | line
a      | external_stop | root    | log    |      | 15   | 100  | local | 7
a      | exit          | symptom | other  | 1    |      | 200  | local | 9
b      | external_stop | root    | log    |      | 15   | 100  | local | 7
b      | exit          | symptom | other  | 1    |      | 90   | local | 9
"""
expect = """
run_id | line
a      | 7
"""
[[case]]
name = "an exception in another file: which came first is not known, unless the scheduler says why and when"
given.events = """
run_id | kind          | role | source | name       | time | clock | line
a      | external_stop | root | log    | SIGTERM    | 100  | local | 7
a      | exception     | root | other  | ValueError | 200  | local | 9
b      | external_stop | root | log    | TIME LIMIT | 100  | local | 7
b      | exception     | root | other  | ValueError | 200  | local | 9
"""
expect = """
run_id | line
b      | 7
"""
[[case]]
name = "Ctrl-C, and the agent's word for a signal"
given.events = """
kind      | role    | source | name                                                             | line
exception | cascade | log    | KeyboardInterrupt                                                | 3
exception | cascade | log    | torch.distributed.elastic.multiprocessing.api.SignalException    | 5
exception | cascade | log    | RayActorError                                                    | 6
"""
expect = """
line
3
5
"""
---*/
WITH said AS (
    SELECT
        run_id, time, clock, source, line, message,
        kind = 'external_stop' AND name IS NOT NULL AND NOT regexp_full_match(name, 'SIG\w+|\d+') AS why,
        kind = 'exception' OR regexp_full_match(coalesce(name, ''), 'SIG\w+|\d+') AS received
    FROM events
    WHERE kind = 'external_stop' OR (kind = 'exception' AND regexp_matches(name, '(^|\.)(KeyboardInterrupt|SignalException)$'))
),

failed AS (
    SELECT run_id, time, clock, source, line, kind, code
    FROM events
    WHERE
        (role = 'root' AND kind <> 'external_stop')
        -- SIGINT, SIGKILL, SIGTERM, and the two signals by which schedulers (Slurm's --signal, LSF at a limit) end a job.
        OR (kind = 'exit' AND role = 'symptom' AND code NOT IN (0, -2, 130, -9, 137, -10, 138, -12, 140, -15, 143))
),

ordered AS (
    SELECT
        said.run_id, said.source, said.line, said.why, said.received, failed.kind, failed.code,
        said.source = failed.source AND said.line < failed.line AND coalesce(said.time <= failed.time, TRUE) AS after_in_file,
        said.time < failed.time AND said.clock <> 'bound' AND failed.clock <> 'bound' AS later,
        (said.source = failed.source AND failed.line < said.line) OR coalesce(failed.time < said.time, FALSE) AS before
    FROM said
    INNER JOIN failed ON said.run_id = failed.run_id
)

SELECT run_id, time, source, line, message
FROM said
WHERE (run_id, source, line) NOT IN (
    SELECT (run_id, source, line) FROM ordered
    WHERE NOT CASE
        WHEN kind = 'exception' THEN after_in_file OR coalesce(why AND later, FALSE)
        WHEN kind <> 'exit' THEN FALSE
        WHEN why THEN NOT before
        ELSE (after_in_file OR coalesce(later, FALSE)) AND (code = 1 OR NOT received)
    END
)
ORDER BY run_id, time NULLS LAST, source, line
