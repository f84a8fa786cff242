/*---
title = "Time of each phase of a step"
doc   = "Seconds per run, step and phase, the longest rank of those that measured it. Only phases that do not contain each other: data, fwd, bwd (or its parts bwd_inner and bwd_allreduce, where both were measured) and step."
reads = ["phase_time"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
phase = "VARCHAR"
seconds = "DOUBLE"
[[case]]
name = "the parts of the backward pass stand for the whole"
given.phase_time = """
rank | after_step | phase         | duration
0    | 1          | fwd           | 1000000000
1    | 1          | fwd           | 2000000000
0    | 1          | bwd           | 5000000000
0    | 1          | bwd_inner     | 3000000000
0    | 1          | bwd_allreduce | 2000000000
0    | 1          | fwd_microstep | 9000000000
"""
expect = """
step | phase         | seconds
1    | bwd_allreduce | 2
1    | bwd_inner     | 3
1    | fwd           | 2
"""
[[case]]
name = "a backward pass without parts"
given.phase_time = """
rank | step | phase | duration
0    | 1    | bwd   | 5000000000
"""
expect = """
step | phase | seconds
1    | bwd   | 5
"""
---*/
WITH measured AS (
    SELECT run_id, coalesce(step, after_step) AS step, phase, max(duration) / 1e9 AS seconds
    FROM phase_time
    WHERE phase IN ('data', 'fwd', 'bwd', 'bwd_inner', 'bwd_allreduce', 'step') AND coalesce(step, after_step) IS NOT NULL
    GROUP BY ALL
),

parted AS (
    SELECT run_id, step
    FROM measured
    WHERE phase IN ('bwd_inner', 'bwd_allreduce')
    GROUP BY run_id, step
    HAVING count(*) = 2
)

SELECT m.run_id, m.step, m.phase, m.seconds
FROM measured AS m
LEFT JOIN parted AS p ON m.run_id = p.run_id AND m.step = p.step
WHERE
    (m.phase = 'bwd' AND p.step IS NULL)
    OR (m.phase IN ('bwd_inner', 'bwd_allreduce') AND p.step IS NOT NULL)
    OR m.phase IN ('data', 'fwd', 'step')
ORDER BY m.run_id, m.step, m.phase
