/*---
title    = "It failed before the first step"
doc      = "Processes raised errors or ended with an error code, and no rank ever printed a step."
fault    = "crash"
severity = "evidence"
reads    = ["events", "run_summary"]
summary  = "{times} records of failure, and no step was ever printed"
[returns]
times = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "two exceptions and no step"
given.run_summary = """
name | last_step
run  |
"""
given.events = """
kind      | role | line
exception | root | 5
exception | root | 9
"""
expect = """
times | line
2     | 5
"""
[[case]]
name = "it had trained"
given.run_summary = """
name | last_step
run  | 16
"""
given.events = """
kind      | role
exception | root
"""
expect = "times"
---*/
SELECT
    count(*) AS times,
    min(e.time) AS time,
    arg_min(e.source, e.line) AS source,
    min(e.line) AS line
FROM events AS e
CROSS JOIN run_summary AS s
WHERE s.last_step IS NULL AND e.role = 'root' AND e.kind IN ('exception', 'exit', 'signal')
HAVING count(*) > 0
