/*---
title    = "The growth of the step time lies in loading data, or outside the timed phases"
doc      = "At the step where steps became slower, about half of what they gained or more lies in timers of data loading, or outside forward, backward and step: in the data loader, in logging, saving or other code of the training loop."
fault    = "throughput"
severity = "evidence"
reads    = ["phase_shift"]
summary  = "{seconds} s per step were gained outside the timed phases, or in loading data, at step {step}"
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
13   | outside | 1.5 | 0.75 | 2
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
13   | outside | 0.5 | 0.25 | 2
"""
expect = "step"
---*/
SELECT step, sum(gained) AS seconds, sum(share) AS share
FROM phase_shift
WHERE phase IN ('outside', 'data')
GROUP BY step
HAVING sum(share) >= $least
ORDER BY step
