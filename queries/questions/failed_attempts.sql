/*---
title = "Attempts that failed"
doc   = "One row per run and attempt that ended by a fault of its own: the first root event of the attempt. Restarts of one job are attempts; an end from outside is no failure, and neither are the peers that fall with the first."
reads = ["event"]
[returns]
run_id = "VARCHAR"
attempt = "INTEGER"
kind = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
[[case]]
name = "two attempts failed, the third was stopped from outside"
given.event = """
kind          | role    | attempt | step | after_step | line
exception     | root    | 0       |      | 7          | 10
exit          | root    | 0       |      | 8          | 12
exception     | cascade | 0       |      | 7          | 11
oom           | root    | 1       | 4    |            | 20
external_stop | root    | 2       | 9    |            | 30
"""
expect = """
attempt | kind      | step
0       | exception | 7
1       | oom       | 4
"""
---*/
SELECT
    run_id,
    coalesce(attempt, 0) AS attempt,
    arg_min(kind, line) AS kind,
    min(coalesce(step, after_step)) AS step,
    min(time) AS time
FROM event
WHERE role = 'root' AND kind <> 'external_stop'
GROUP BY run_id, coalesce(attempt, 0)
ORDER BY run_id, attempt
