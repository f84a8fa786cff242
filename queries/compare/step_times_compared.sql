/*---
title = "Step-time regression between two runs"
doc   = "Typical, 95th and 99th percentile step time of both runs and their ratio, over the steps after the first (which pays for start-up). The interval and the verdict come from `postmortem compare`."
reads = ["step_times"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
statistic = "VARCHAR"
before_seconds = "DOUBLE"
after_seconds = "DOUBLE"
ratio = "DOUBLE"
before_steps = "BIGINT"
after_steps = "BIGINT"
[[case]]
name = "twice as long"
given.step_times = """
run_id | step | seconds
before | 1    | 9
before | 2    | 1
before | 3    | 1
after  | 1    | 9
after  | 2    | 2
after  | 3    | 2
"""
expect = """
statistic       | before_seconds | after_seconds | ratio | before_steps | after_steps
median          | 1              | 2             | 2     | 2            | 2
95th percentile | 1              | 2             | 2     | 2            | 2
99th percentile | 1              | 2             | 2     | 2            | 2
"""
---*/
WITH ordinary AS (
    SELECT run_id, seconds
    FROM step_times
    WHERE run_id IN ($before, $after)
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY step) > 1
),

levels AS (
    SELECT run_id, count(*) AS steps, quantile_cont(seconds, [0.5, 0.95, 0.99]) AS q
    FROM ordinary
    GROUP BY run_id
),

wide AS (
    SELECT
        max(q) FILTER (WHERE run_id = $before) AS b,
        max(q) FILTER (WHERE run_id = $after) AS a,
        max(steps) FILTER (WHERE run_id = $before) AS before_steps,
        max(steps) FILTER (WHERE run_id = $after) AS after_steps
    FROM levels
),

places AS (
    SELECT unnest([1, 2, 3]) AS i, unnest(['median', '95th percentile', '99th percentile']) AS statistic
)

SELECT
    p.statistic,
    w.b[p.i] AS before_seconds,
    w.a[p.i] AS after_seconds,
    w.a[p.i] / w.b[p.i] AS ratio,
    w.before_steps,
    w.after_steps
FROM places AS p
CROSS JOIN wide AS w
ORDER BY p.i
