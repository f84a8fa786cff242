/*---
title    = "It had trained before it failed"
doc      = "Processes raised errors or ended with an error code, after ranks had printed steps."
fault    = "crash"
severity = "evidence"
reads    = ["events", "run_summary"]
summary  = "{times} records of failure, the last step is {last_step}"
[returns]
times = "BIGINT"
last_step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "an exception after step 16"
given.run_summary = """
name | last_step
run  | 16
"""
given.events = """
kind      | role | line
exception | root | 5
"""
expect = """
times | last_step | line
1     | 16        | 5
"""
[[case]]
name = "no step was ever printed"
given.run_summary = """
name | last_step
run  |
"""
given.events = """
kind      | role
exception | root
"""
expect = "times"
---*/
SELECT
    count(*) AS times,
    any_value(s.last_step) AS last_step,
    min(e.time) AS time,
    arg_min(e.source, e.line) AS source,
    min(e.line) AS line
FROM events AS e
CROSS JOIN run_summary AS s
WHERE s.last_step IS NOT NULL AND e.role = 'root' AND e.kind IN ('exception', 'exit', 'signal')
HAVING count(*) > 0
