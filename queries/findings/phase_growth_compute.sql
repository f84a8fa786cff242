/*---
title    = "Forward or backward carry the growth of the step time"
doc      = "At the step where steps became slower, about half of what they gained or more lies in the timers of forward and backward without the all-reduce. At ZeRO stage 3 these hold the gathering of parameters too."
fault    = "throughput"
severity = "evidence"
reads    = ["phase_shift"]
summary  = "{phases} gained {seconds} s per step at step {step}"
[params]
least = { type = "DOUBLE", default = 0.45, doc = "Share of the whole gain from which it counts." }
[returns]
step = "BIGINT"
phases = "VARCHAR"
seconds = "DOUBLE"
share = "DOUBLE"
[[case]]
name = "most of the gain"
given.phase_shift = """
step | phase     | gained | share | whole
13   | fwd       | 1      | 0.5   | 2
13   | bwd_inner | 0.5    | 0.25  | 2
13   | step      | 0.5    | 0.25  | 2
"""
expect = """
step | phases         | seconds | share
13   | fwd, bwd_inner | 1.5     | 0.75
"""
[[case]]
name = "another phase"
given.phase_shift = """
step | phase         | gained | share | whole
13   | bwd_allreduce | 1.5    | 0.75  | 2
13   | fwd           | 0.5    | 0.25  | 2
"""
expect = "step"
---*/
SELECT
    step,
    string_agg(phase, ', ' ORDER BY gained DESC) FILTER (WHERE share > 0.1) AS phases,
    sum(gained) AS seconds,
    sum(share) AS share
FROM phase_shift
WHERE phase IN ('fwd', 'bwd', 'bwd_inner', 'fwd_bwd')
GROUP BY step
HAVING sum(share) >= $least
ORDER BY step
