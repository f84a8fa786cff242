/*---
title = "Where the time of a step goes, by phase"
doc = "Mean time per profiled step and rank; a moment belongs to one phase only, so the phases of a step add up to it."
reads = ["trace_phase"]
[returns]
phase = "VARCHAR"
ms = "DOUBLE"
n = "BIGINT"
[[case]]
name = "a phase that a step does not have counts as nothing"
given.trace_phase = """
rank | step | phase       | duration
0    | 1    | computing   | 30000000
0    | 1    | data loader | 10000000
0    | 2    | computing   | 50000000
"""
expect = """
phase       | ms | n
computing   | 40 | 2
data loader | 5  | 2
"""
---*/
WITH steps AS (
    SELECT count(*) AS n FROM (SELECT DISTINCT rank, step FROM trace_phase)
)

SELECT
    trace_phase.phase,
    sum(trace_phase.duration) / 1e6 / max(steps.n) AS ms,
    max(steps.n) AS n
FROM trace_phase CROSS JOIN steps
GROUP BY trace_phase.phase
ORDER BY ms DESC
