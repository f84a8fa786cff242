/*---
title = "Where the time of a step goes, by the framework's own timers"
doc = "Mean over ranks and observations of the timers that the framework printed; timers nest, so they do not add up."
reads = ["phase_time"]
instead_of = "step_phases"
[returns]
phase = "VARCHAR"
ms = "DOUBLE"
n = "BIGINT"
[[case]]
name = "microstep timers are left out"
given.phase_time = """
rank | phase         | duration
0    | fwd           | 30000000
1    | fwd           | 10000000
0    | fwd_microstep | 1
"""
expect = """
phase | ms | n
fwd   | 20 | 2
"""
---*/
SELECT
    phase,
    avg(duration) / 1e6 AS ms,
    count(*) AS n
FROM phase_time
WHERE NOT phase LIKE '%_microstep'
GROUP BY phase
ORDER BY ms DESC, phase
LIMIT 12
