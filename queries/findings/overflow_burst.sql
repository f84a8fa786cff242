/*---
title    = "Overflows one after another"
doc      = "At least five steps were skipped for overflows within ten steps, late in the run or without an end: more than the search for a loss scale at the start."
fault    = "nan_inf"
severity = "evidence"
reads    = ["events", "run_summary"]
summary  = "{times} overflows within ten steps from step {step} on"
[params]
least = { type = "BIGINT", default = 5, doc = "Overflows within ten steps that are no search for a loss scale any more." }
settled = { type = "BIGINT", default = 50, doc = "Steps after which the search for a loss scale is over." }
[returns]
times = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "five in a row after step 50"
given.run_summary = """
first_step | last_step
1          | 200
"""
given.events = """
kind     | after_step | line
overflow | 100        | 1
overflow | 101        | 2
overflow | 102        | 3
overflow | 103        | 4
overflow | 104        | 5
"""
expect = """
times | step | line
5     | 100  | 1
"""
[[case]]
name = "the search at the start"
given.run_summary = """
first_step | last_step
1          | 200
"""
given.events = """
kind     | after_step | line
overflow | 1          | 1
overflow | 2          | 2
overflow | 3          | 3
overflow | 4          | 4
overflow | 5          | 5
"""
expect = "times"
---*/
WITH overflows AS (
    SELECT DISTINCT ON (coalesce(e.step, e.after_step))
        coalesce(e.step, e.after_step) AS step, e.time, e.source, e.line
    FROM events AS e
    CROSS JOIN run_summary AS s
    WHERE e.kind = 'overflow' AND coalesce(e.step, e.after_step) >= s.first_step + $settled
    ORDER BY coalesce(e.step, e.after_step), e.line
),

counted AS (
    SELECT
        step, time, source, line,
        count(*) OVER (ORDER BY step RANGE BETWEEN CURRENT ROW AND 9 FOLLOWING) AS times
    FROM overflows
)

SELECT times, step, time, source, line
FROM counted
WHERE times >= $least
ORDER BY step
LIMIT 1
