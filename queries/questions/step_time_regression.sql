/*---
title = "Step-time regression within a run: every lasting change of the typical step time"
doc   = "Change points of the job's step time, with the levels before and after each. Between two runs, see step_times_compared."
reads = ["step_change"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
transient = "BOOLEAN"
lasts = "BOOLEAN"
[[case]]
name = "no change"
given.step_change = """
step
"""
expect = """
step
"""
---*/
SELECT run_id, step, before, after, ratio, transient, lasts
FROM step_change
ORDER BY run_id, step
