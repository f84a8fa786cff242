/*---
title = "Typical time of each phase of each rank"
doc   = "The median over steps, in seconds, and over how many. Ranks that are not known are left out."
keep  = true
reads = ["rank_phase_steps"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
phase = "VARCHAR"
seconds = "DOUBLE"
steps = "BIGINT"
[[case]]
name = "three steps of one rank"
given.rank_phase_steps = """
rank | step | phase | seconds
0    | 1    | fwd   | 2
0    | 2    | fwd   | 3
0    | 3    | fwd   | 9
     | 3    | fwd   | 9
"""
expect = """
rank | phase | seconds | steps
0    | fwd   | 3       | 3
"""
---*/
SELECT run_id, rank, phase, median(seconds) AS seconds, count(*) AS steps
FROM rank_phase_steps
WHERE rank IS NOT NULL
GROUP BY run_id, rank, phase
ORDER BY run_id, rank, phase
