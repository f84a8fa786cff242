/*---
title = "Which operators and kernels changed the step time"
doc   = """
Mean contribution per rank and profiled step of every operator and kernel in both runs, by what it adds to or takes from
the step time; all rows add up to the change of the step. `state` says whether it appeared, vanished, got slower or
faster (by more than two standard errors over ranks and steps), or stayed.
"""
reads = ["trace_contribution", "trace_step"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
phase = "VARCHAR"
name = "VARCHAR"
before_ms = "DOUBLE"
after_ms = "DOUBLE"
change_ms = "DOUBLE"
before_spread_ms = "DOUBLE"
after_spread_ms = "DOUBLE"
before_count = "DOUBLE"
after_count = "DOUBLE"
state = "VARCHAR"
[[case]]
name = "one kernel vanished, one got slower"
given.trace_step = """
run_id | source | step
before | a      | 1
before | a      | 2
after  | a      | 1
after  | a      | 2
"""
given.trace_contribution = """
run_id | source | step | phase       | name | duration | count
before | a      | 1    | gpu compute | old  | 6000000  | 2
before | a      | 2    | gpu compute | old  | 6000000  | 2
before | a      | 1    | gpu compute | gemm | 1000000  | 1
before | a      | 2    | gpu compute | gemm | 1100000  | 1
after  | a      | 1    | gpu compute | gemm | 2000000  | 1
after  | a      | 2    | gpu compute | gemm | 2100000  | 1
"""
expect = """
phase       | name | before_ms | after_ms | change_ms | before_count | after_count | state
gpu compute | old  | 6         | 0        | -6        | 2            | 0           | vanished
gpu compute | gemm | 1.05      | 2.05     | 1         | 1            | 1           | slower
"""
---*/
WITH size AS (
    SELECT
        greatest(count(*) FILTER (WHERE run_id = $before), 1) AS before_steps,
        greatest(count(*) FILTER (WHERE run_id = $after), 1) AS after_steps
    FROM trace_step
),

spent AS (
    SELECT
        phase, coalesce(name, '') AS name,
        coalesce(sum(duration / 1e6) FILTER (WHERE run_id = $before), 0) AS before_sum,
        coalesce(sum(duration / 1e6) FILTER (WHERE run_id = $after), 0) AS after_sum,
        coalesce(sum((duration / 1e6) ** 2) FILTER (WHERE run_id = $before), 0) AS before_squares,
        coalesce(sum((duration / 1e6) ** 2) FILTER (WHERE run_id = $after), 0) AS after_squares,
        coalesce(sum(count) FILTER (WHERE run_id = $before), 0) AS before_count,
        coalesce(sum(count) FILTER (WHERE run_id = $after), 0) AS after_count
    FROM trace_contribution
    WHERE run_id IN ($before, $after)
    GROUP BY phase, coalesce(name, '')
),

level AS (
    SELECT
        s.phase, s.name,
        s.before_sum / z.before_steps AS before_ms,
        s.after_sum / z.after_steps AS after_ms,
        sqrt(greatest(s.before_squares / z.before_steps - (s.before_sum / z.before_steps) ** 2, 0)) AS before_spread_ms,
        sqrt(greatest(s.after_squares / z.after_steps - (s.after_sum / z.after_steps) ** 2, 0)) AS after_spread_ms,
        sqrt(
            greatest(s.before_squares / z.before_steps - (s.before_sum / z.before_steps) ** 2, 0) / z.before_steps
            + greatest(s.after_squares / z.after_steps - (s.after_sum / z.after_steps) ** 2, 0) / z.after_steps
        ) AS error_ms,
        s.before_count / z.before_steps AS before_count,
        s.after_count / z.after_steps AS after_count
    FROM spent AS s
    CROSS JOIN size AS z
)

SELECT
    phase, nullif(name, '') AS name, before_ms, after_ms,
    after_ms - before_ms AS change_ms,
    before_spread_ms, after_spread_ms, before_count, after_count,
    CASE
        WHEN before_ms = 0 THEN 'appeared'
        WHEN after_ms = 0 THEN 'vanished'
        WHEN abs(after_ms - before_ms) <= 2 * error_ms THEN 'same'
        WHEN after_ms > before_ms THEN 'slower'
        ELSE 'faster'
    END AS state
FROM level
ORDER BY abs(after_ms - before_ms) DESC, phase, name
