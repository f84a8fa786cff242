/*---
title    = "All phases grew alike"
doc      = "Where steps became slower, forward, backward and the optimizer's step all take longer by about the same factor and hold about half of the gain or more: the device or its host runs slower, as the optimizer's step does not depend on the batch."
fault    = "throughput"
severity = "evidence"
reads    = ["phase_shift"]
summary  = "{phases} take {least_ratio} to {most_ratio} times as long from step {step} on"
[params]
least = { type = "DOUBLE", default = 1.1, doc = "Ratio that each phase has to reach." }
part = { type = "DOUBLE", default = 0.45, doc = "Share of the whole gain that these phases have to hold together." }
alike = { type = "DOUBLE", default = 1.25, doc = "Largest ratio between the ratios of two phases." }
[returns]
step = "BIGINT"
phases = "VARCHAR"
least_ratio = "DOUBLE"
most_ratio = "DOUBLE"
[[case]]
name = "half as long again, each of them"
given.phase_shift = """
step | phase     | ratio | share
13   | fwd       | 1.5   | 0.3
13   | bwd_inner | 1.625 | 0.5
13   | step      | 1.5   | 0.1
13   | outside   |       | 0.1
"""
expect = """
step | phases               | least_ratio | most_ratio
13   | bwd_inner, fwd, step | 1.5         | 1.625
"""
[[case]]
name = "the optimizer's step stays"
given.phase_shift = """
step | phase     | ratio | share
13   | fwd       | 1.5   | 0.4
13   | bwd_inner | 1.625 | 0.6
13   | step      | 1     | 0
"""
expect = "step"
[[case]]
name = "alike, but the gain lies elsewhere"
given.phase_shift = """
step | phase     | ratio | share
13   | fwd       | 1.5   | 0.01
13   | bwd_inner | 1.625 | 0.02
13   | step      | 1.5   | 0.01
13   | outside   |       | 0.96
"""
expect = "step"
---*/
SELECT
    step,
    string_agg(phase, ', ' ORDER BY phase) AS phases,
    min(ratio) AS least_ratio,
    max(ratio) AS most_ratio
FROM phase_shift
WHERE phase IN ('fwd', 'bwd', 'bwd_inner', 'step')
GROUP BY step
HAVING
    bool_or(phase = 'fwd') AND bool_or(phase IN ('bwd', 'bwd_inner')) AND bool_or(phase = 'step')
    AND sum(share) >= $part AND min(ratio) >= $least AND max(ratio) <= $alike * min(ratio)
ORDER BY step
