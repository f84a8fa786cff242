/*---
title = "Time of each phase of a step"
doc   = "Seconds per run, step and phase, the longest rank of those that measured it; the phases of rank_phase_steps, which do not contain each other."
keep = true
reads = ["rank_phase_steps"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
phase = "VARCHAR"
seconds = "DOUBLE"
[[case]]
name = "the longest rank counts"
given.rank_phase_steps = """
rank | step | phase | seconds
0    | 1    | fwd   | 1
1    | 1    | fwd   | 2
     | 1    | step  | 1
"""
expect = """
step | phase | seconds
1    | fwd   | 2
1    | step  | 1
"""
---*/
SELECT run_id, step, phase, max(seconds) AS seconds
FROM rank_phase_steps
GROUP BY run_id, step, phase
ORDER BY run_id, step, phase
