/*---
title = "Errors after which their writer went on training"
doc   = "An exception or a refused allocation that was caught: how many steps further the same rank came in the same file and attempt. A few steps may be what buffered output brings late; one after which nobody came further has no row, or none above 0."
reads = ["events", "metrics"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
part = "INTEGER"
steps = "BIGINT"
[[case]]
name = "rank 1 went on for 26 steps in one file; what others, other files and later attempts did does not count"
given.metrics = """
source | attempt | rank | step | name
log    | 0       | 0    | 90   | loss
log    | 0       | 1    | 30   | loss
other  | 0       | 1    | 95   | loss
log    | 1       | 1    | 99   | loss
"""
given.events = """
kind      | source | attempt | rank | after_step | line
oom       | log    | 0       | 1    | 4          | 9
exception | log    | 0       | 1    | 30         | 50
exception | log    | 0       |      | 4          | 10
exception | more   | 0       | 1    | 4          | 9
exit      | log    | 0       | 1    | 4          | 11
"""
expect = """
source | line | steps
log    | 9    | 26
log    | 10   | 86
log    | 50   | 0
"""
---*/
WITH reached AS (
    SELECT run_id, source, attempt, rank, max(step) AS last_step
    FROM metrics
    -- Most runs have no such event, and then nothing is read.
    WHERE step IS NOT NULL AND source IN (SELECT e.source FROM events AS e WHERE e.kind IN ('exception', 'oom'))
    GROUP BY ALL
)

SELECT e.run_id, e.source, e.line, e.part, max(r.last_step - e.after_step) AS steps
FROM events AS e
INNER JOIN reached AS r
    ON
        e.run_id = r.run_id AND e.source = r.source AND e.attempt IS NOT DISTINCT FROM r.attempt
        AND (e.rank IS NULL OR r.rank IS NULL OR e.rank = r.rank)
WHERE e.kind IN ('exception', 'oom')
GROUP BY e.run_id, e.source, e.line, e.part
ORDER BY e.run_id, e.source, e.line, e.part
