/*---
title = "Where the change of the step time comes from, phase by phase"
doc   = "Mean time per rank and profiled step in each phase, in both runs; the changes of the phases add up to the change of the step. `spread` is the standard deviation over ranks and steps. `part` is the share of the whole change."
reads = ["trace_phase", "trace_step"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
phase = "VARCHAR"
before_ms = "DOUBLE"
after_ms = "DOUBLE"
change_ms = "DOUBLE"
part = "DOUBLE"
before_spread_ms = "DOUBLE"
after_spread_ms = "DOUBLE"
before_steps = "BIGINT"
after_steps = "BIGINT"
[[case]]
name = "the data loader is all of the change"
given.trace_step = """
run_id | source | rank | step | duration
before | a      | 0    | 1    | 9000000
before | a      | 0    | 2    | 9000000
after  | a      | 0    | 1    | 5000000
"""
given.trace_phase = """
run_id | source | rank | step | phase       | duration
before | a      | 0    | 1    | data loader | 4000000
before | a      | 0    | 1    | gpu compute | 5000000
before | a      | 0    | 2    | data loader | 4000000
before | a      | 0    | 2    | gpu compute | 5000000
after  | a      | 0    | 1    | gpu compute | 5000000
"""
expect = """
phase       | before_ms | after_ms | change_ms | part | before_steps | after_steps
step        | 9         | 5        | -4        | 1    | 2            | 1
data loader | 4         | 0        | -4        | 1    | 2            | 1
gpu compute | 5         | 5        | 0         | 0    | 2            | 1
"""
---*/
WITH spent AS (
    SELECT run_id, source, step, phase, duration FROM trace_phase WHERE run_id IN ($before, $after)
    UNION ALL
    SELECT run_id, source, step, 'step' AS phase, duration FROM trace_step WHERE run_id IN ($before, $after)
),

step AS (
    SELECT run_id, source, step FROM trace_step WHERE run_id IN ($before, $after)
),

phase AS (
    SELECT DISTINCT phase FROM spent
),

complete AS (
    SELECT s.run_id, p.phase, coalesce(t.duration, 0) / 1e6 AS ms
    FROM step AS s
    CROSS JOIN phase AS p
    LEFT JOIN spent AS t ON t.run_id = s.run_id AND t.source = s.source AND t.step = s.step AND t.phase = p.phase
),

level AS (
    SELECT
        phase,
        avg(ms) FILTER (WHERE run_id = $before) AS before_ms,
        avg(ms) FILTER (WHERE run_id = $after) AS after_ms,
        stddev_samp(ms) FILTER (WHERE run_id = $before) AS before_spread_ms,
        stddev_samp(ms) FILTER (WHERE run_id = $after) AS after_spread_ms,
        count(*) FILTER (WHERE run_id = $before) AS before_steps,
        count(*) FILTER (WHERE run_id = $after) AS after_steps
    FROM complete
    GROUP BY phase
)

SELECT
    phase, before_ms, after_ms,
    after_ms - before_ms AS change_ms,
    (after_ms - before_ms) / nullif(max(after_ms - before_ms) FILTER (WHERE phase = 'step') OVER (), 0) AS part,
    before_spread_ms, after_spread_ms, before_steps, after_steps
FROM level
WHERE before_steps > 0 AND after_steps > 0
ORDER BY phase <> 'step', abs(after_ms - before_ms) DESC, phase
