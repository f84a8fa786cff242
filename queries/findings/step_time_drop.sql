/*---
title    = "Steps take longer from one step on"
doc      = "A lasting change of the job's step time (max over ranks), found by change point analysis; a slow start and stretches that pass are left out, and so is a single small change in a short run (see step_time_open). It names no rank: all ranks slow down alike."
fault    = "throughput"
severity = "fault"
weight   = 1
reads    = ["step_change", "metrics", "rank_step_times"]
summary  = "a step takes {after} s from step {step} on, {ratio} times the {before} s before"
[params]
least = { type = "DOUBLE", default = 1.05, doc = "Ratio of step times under which a change is not worth a fault." }
[returns]
rank = "INTEGER"
step = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "three times slower from step 13 on; stretches that pass, a small single change and one under the bound are left out"
given.step_change = """
step | before | after | ratio | held | transient | lasts
13   | 0.1    | 0.3   | 3     | 12   | false     | true
61   | 0.1    | 0.108 | 1.08  | 60   | false     | false
30   | 0.1    | 0.4   | 4     | 90   | true      | true
70   | 0.1    | 0.104 | 1.04  | 50   | false     | true
80   | 0.1    | 0.104 | 1.04  | 40   | false     | false
"""
expect = """
step | ratio
13   | 3
"""
[[case]]
name = "steady"
given.step_change = """
step
"""
expect = """
step
"""
---*/
WITH worst AS (
    SELECT step, before, after, ratio
    FROM step_change
    WHERE ratio >= $least AND lasts AND NOT transient
    ORDER BY ratio DESC
    LIMIT 1
),

-- Printed times come straight from the metrics, so that of a large run one step is read and not all of them.
places AS (
    SELECT m.step, m.value AS seconds, m.time, m.source, m.line
    FROM metrics AS m
    INNER JOIN worst AS w ON m.step = w.step
    WHERE m.name = 'step_time' AND isfinite(m.value)
    UNION ALL
    SELECT r.step, r.seconds, r.time, r.source, r.line
    FROM rank_step_times AS r
    INNER JOIN worst AS w ON r.step = w.step
    WHERE r.origin <> 'printed'
),

slowest AS (
    SELECT step, seconds, time, source, line
    FROM places
    ORDER BY seconds DESC, source, line
    LIMIT 1
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    w.step, w.before, w.after, w.ratio,
    s.time, s.source, s.line,
    printf('step %d: %.4g s (typically %.4g s before, %.4g s from here on)', w.step, s.seconds, w.before, w.after) AS text
FROM worst AS w
LEFT JOIN slowest AS s ON w.step = s.step
