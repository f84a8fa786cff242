/*---
title = "Step-time regression within a run: every lasting change of the typical step time"
doc   = "Change points of the job's step time, with the levels before and after each. Between two runs, see step_times_compared."
reads = ["step_times"]
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
given.step_times = """
step | seconds
1    | 0.1
2    | 0.1
"""
expect = "step"
---*/
WITH series AS (
    SELECT run_id, list(step ORDER BY step) AS steps, change_points(list(seconds ORDER BY step)) AS found
    FROM step_times
    GROUP BY run_id
),

changes AS (
    SELECT run_id, steps, unnest(found) AS c FROM series
)

SELECT run_id, steps[c.place] AS step, c.before, c.after, c.ratio, c.transient, c.lasts
FROM changes
ORDER BY run_id, step
