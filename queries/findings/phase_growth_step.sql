/*---
title    = "The optimizer's step carries the growth of the step time"
doc      = "At the step where steps became slower, about half of what they gained or more lies in the timer of the optimizer's step, which does the same work whatever the batch."
fault    = "throughput"
severity = "evidence"
reads    = ["phase_shift"]
summary  = "the optimizer's step gained {seconds} s per step at step {step}"
[params]
least = { type = "DOUBLE", default = 0.45, doc = "Share of the whole gain from which it counts." }
[returns]
step = "BIGINT"
seconds = "DOUBLE"
share = "DOUBLE"
[[case]]
name = "most of the gain"
given.phase_shift = """
step | phase | gained | share | whole
13   | step  | 1.5    | 0.75  | 2
"""
expect = """
step | seconds | share
13   | 1.5     | 0.75
"""
[[case]]
name = "another phase"
given.phase_shift = """
step | phase | gained | share | whole
13   | fwd   | 1.5    | 0.75  | 2
13   | step  | 0.5    | 0.25  | 2
"""
expect = "step"
---*/
SELECT step, gained AS seconds, share
FROM phase_shift
WHERE phase = 'step' AND share >= $least
ORDER BY step
