/*---
title = "Phases that carry the change of the step time"
doc   = "Mean seconds per ordinary step in each phase that timers measured, in both runs, and what each adds to the change. `other` is the time of a step outside all measured phases, so that the changes add up to that of the step. Steps before the level that was compared, and scheduled ones, are left out."
reads = ["phase_steps", "step_times", "scheduled_steps"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
before_first = { type = "BIGINT", default = 2, doc = "First step of the before-run that counts." }
after_first = { type = "BIGINT", default = 2, doc = "First step of the after-run that counts." }
[returns]
phase = "VARCHAR"
before_seconds = "DOUBLE"
after_seconds = "DOUBLE"
difference = "DOUBLE"
share = "DOUBLE"
before_steps = "BIGINT"
after_steps = "BIGINT"
[[case]]
name = "the reduction is most of the change, what no timer saw is the rest"
given.step_times = """
run_id | step | seconds
before | 1    | 99
before | 2    | 10
before | 3    | 12
after  | 2    | 5
"""
given.phase_steps = """
run_id | step | phase         | seconds
before | 2    | fwd           | 2
before | 3    | fwd           | 2
before | 2    | bwd_allreduce | 6
before | 3    | bwd_allreduce | 6
after  | 2    | fwd           | 2
after  | 2    | bwd_allreduce | 1
"""
expect = """
phase         | before_seconds | after_seconds | difference | share        | before_steps | after_steps
bwd_allreduce | 6              | 1             | -5         | 0.8333333333 | 2            | 1
fwd           | 2              | 2             | 0          | 0            | 2            | 1
other         | 3              | 2             | -1         | 0.1666666667 | 2            | 1
"""
[[case]]
name = "no timers on one side"
given.step_times = """
run_id | step | seconds
before | 2    | 10
after  | 2    | 5
"""
given.phase_steps = """
run_id | step | phase | seconds
before | 2    | fwd   | 2
"""
expect = "phase"
---*/
WITH counted AS (
    SELECT t.run_id, t.step, t.seconds
    FROM step_times AS t
    LEFT JOIN scheduled_steps AS s ON t.run_id = s.run_id AND t.step = s.step
    WHERE
        s.step IS NULL
        AND (t.run_id = $before AND t.step >= $before_first OR t.run_id = $after AND t.step >= $after_first)
),

timed AS (
    SELECT c.run_id, c.step, any_value(c.seconds) AS seconds
    FROM counted AS c
    INNER JOIN phase_steps AS p ON c.run_id = p.run_id AND c.step = p.step
    GROUP BY c.run_id, c.step
),

sizes AS (
    SELECT
        count(*) FILTER (WHERE run_id = $before) AS before_steps,
        count(*) FILTER (WHERE run_id = $after) AS after_steps,
        avg(seconds) FILTER (WHERE run_id = $before) AS before_whole,
        avg(seconds) FILTER (WHERE run_id = $after) AS after_whole
    FROM timed
),

parts AS (
    SELECT
        p.phase,
        coalesce(sum(p.seconds) FILTER (WHERE p.run_id = $before), 0) / any_value(z.before_steps) AS before_seconds,
        coalesce(sum(p.seconds) FILTER (WHERE p.run_id = $after), 0) / any_value(z.after_steps) AS after_seconds
    FROM phase_steps AS p
    INNER JOIN timed AS t ON p.run_id = t.run_id AND p.step = t.step
    CROSS JOIN sizes AS z
    WHERE z.before_steps > 0 AND z.after_steps > 0
    GROUP BY p.phase
),

complete AS (
    SELECT phase, before_seconds, after_seconds FROM parts
    UNION ALL
    SELECT
        'other' AS phase,
        any_value(z.before_whole) - sum(p.before_seconds) AS before_seconds,
        any_value(z.after_whole) - sum(p.after_seconds) AS after_seconds
    FROM parts AS p
    CROSS JOIN sizes AS z
    HAVING count(*) > 0
)

SELECT
    c.phase, c.before_seconds, c.after_seconds,
    c.after_seconds - c.before_seconds AS difference,
    (c.after_seconds - c.before_seconds) / nullif(z.after_whole - z.before_whole, 0) AS share,
    z.before_steps, z.after_steps
FROM complete AS c
CROSS JOIN sizes AS z
ORDER BY c.phase = 'other', abs(c.after_seconds - c.before_seconds) DESC, c.phase
