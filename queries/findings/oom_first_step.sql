/*---
title    = "The allocation failed before the second step"
doc      = "No rank had printed more than its first step when memory was refused: nothing could pile up, so one step, or the model itself, is too large."
fault    = "oom"
severity = "evidence"
reads    = ["events", "run_summary"]
summary  = "memory was refused before the second step"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "refused while the engine starts"
given.run_summary = """
first_step | last_step
           |
"""
given.events = """
kind | rank | line
oom  | 1    | 5
"""
expect = """
rank | line
1    | 5
"""
[[case]]
name = "refused after eleven steps"
given.run_summary = """
first_step | last_step
1          | 11
"""
given.events = """
kind | rank | line
oom  | 1    | 5
"""
expect = "rank"
---*/
SELECT e.rank, e.time, e.source, e.line
FROM events AS e
CROSS JOIN run_summary AS s
WHERE e.kind = 'oom' AND coalesce(s.last_step - s.first_step, 0) < 1
ORDER BY e.time NULLS LAST, e.source, e.line
