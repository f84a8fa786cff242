/*---
title    = "The all-reduce carries the growth of the step time"
doc      = "At the step where steps became slower, at least half of what they gained lies in the timer of the gradient all-reduce: slow transfers, or waiting for a rank that comes late."
fault    = "throughput"
severity = "evidence"
reads    = ["phase_shift"]
summary  = "the all-reduce gained {seconds} s per step at step {step}"
[params]
least = { type = "DOUBLE", default = 0.5, doc = "Share of the whole gain from which it counts." }
[returns]
step = "BIGINT"
seconds = "DOUBLE"
share = "DOUBLE"
[[case]]
name = "most of the gain"
given.phase_shift = """
step | phase | gained | share | whole
13   | bwd_allreduce | 1.5 | 0.75 | 2
"""
expect = """
step | seconds | share
13   | 1.5     | 0.75
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
SELECT step, sum(gained) AS seconds, sum(share) AS share
FROM phase_shift
WHERE phase IN ('bwd_allreduce')
GROUP BY step
HAVING sum(share) >= $least
ORDER BY step
