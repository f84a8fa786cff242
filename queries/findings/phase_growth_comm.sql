/*---
title    = "Communication carries the growth of the step time"
doc      = "At the step where steps became slower, about half of what they gained or more lies in timers of communication (the gradient all-reduce, gathering of parameters, sending and receiving between stages): slow transfers, or waiting for a rank that comes late."
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
step | phase | gained | share | whole
13   | bwd_allreduce | 1.5 | 0.75 | 2
"""
expect = """
step | phases        | seconds | share
13   | bwd_allreduce | 1.5     | 0.75
"""
[[case]]
name = "another phase"
given.phase_shift = """
step | phase | gained | share | whole
13   | fwd | 1.5 | 0.75 | 2
13   | bwd_allreduce | 0.5 | 0.25 | 2
"""
expect = "step"
---*/
SELECT
    step,
    string_agg(phase, ', ' ORDER BY gained DESC) FILTER (WHERE share > 0.1) AS phases,
    sum(gained) AS seconds,
    sum(share) AS share
FROM phase_shift
WHERE phase IN ('bwd_allreduce', 'pipe', 'gather')
GROUP BY step
HAVING sum(share) >= $least
ORDER BY step
