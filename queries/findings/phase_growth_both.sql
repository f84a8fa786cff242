/*---
title    = "Some ranks gained in their own work what others gained in waiting"
doc      = "Where steps became slower, the longest own work of a rank (loading data, forward, backward) and the longest communication of a rank both gained about as much as the whole step: on one rank they would add up, so some ranks work longer and others wait for them."
fault    = "throughput"
severity = "evidence"
reads    = ["phase_shift"]
summary  = "{own} s per step of own work and {waiting} s of communication were gained, of {whole} s in all, at step {step}"
[returns]
step = "BIGINT"
own = "DOUBLE"
waiting = "DOUBLE"
whole = "DOUBLE"
[[case]]
name = "forward and all-reduce each gain the whole"
given.phase_shift = """
step | phase         | gained | whole
13   | fwd           | 2      | 2
13   | bwd_allreduce | 1.75   | 2
13   | data          | -0.25  | 2
"""
expect = """
step | own | waiting | whole
13   | 2   | 1.75    | 2
"""
[[case]]
name = "they add up to the whole: one rank"
given.phase_shift = """
step | phase         | gained | whole
13   | fwd           | 1      | 2
13   | bwd_allreduce | 1      | 2
"""
expect = "step"
[[case]]
name = "timers added up over ten steps"
given.phase_shift = """
step | phase         | gained | whole
13   | fwd           | 10     | 2
13   | bwd_allreduce | 10     | 2
"""
expect = "step"
---*/
SELECT
    step,
    sum(greatest(gained, 0)) FILTER (WHERE phase IN ('data', 'fwd', 'bwd', 'bwd_inner', 'fwd_bwd')) AS own,
    sum(greatest(gained, 0)) FILTER (WHERE phase IN ('bwd_allreduce', 'pipe', 'gather')) AS waiting,
    any_value(whole) AS whole
FROM phase_shift
GROUP BY step
HAVING
    own BETWEEN 0.75 * any_value(whole) AND 1.5 * any_value(whole)
    AND waiting BETWEEN 0.75 * any_value(whole) AND 1.5 * any_value(whole)
ORDER BY step
