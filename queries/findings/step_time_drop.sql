/*---
title    = "Steps take longer from one step on"
doc      = "A lasting change of the job's step time (max over ranks), found by change point analysis; a slow start and stretches that pass are left out, and so is a single small change in a short run (see step_time_open). It names no rank: all ranks slow down alike."
fault    = "throughput"
severity = "fault"
weight   = 1
reads    = ["step_change", "step_times", "metric", "trace_step"]
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
given.step_times = """
step | seconds
13   | 0.31
"""
given.metric = """
rank | step | name      | value | source | line | time
0    | 13   | step_time | 0.30  | a      | 7    | 70
1    | 13   | step_time | 0.31  | b      | 8    | 71
1    | 13   | loss      | 9     | b      | 8    | 71
1    | 14   | step_time | 0.90  | b      | 9    | 72
"""
expect = """
step | ratio | source | line | time | text
13   | 3     | b      | 8    | 71   | step 13: 0.31 s (typically 0.1 s before, 0.3 s from here on)
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

-- Straight from the tables: of a large run one step is read, and not the times of all ranks at all steps.
places AS (
    SELECT
        CASE WHEN m.name = 'step_time' THEN 1 ELSE 2 END AS preference,
        CASE WHEN m.name = 'step_time' AND isfinite(m.value) THEN m.value END AS seconds,
        m.time, m.source, m.line
    FROM metric AS m
    INNER JOIN worst AS w ON m.step = w.step
    UNION ALL
    SELECT 3, t.duration / 1e9, t.start_time, t.source, NULL
    FROM trace_step AS t
    INNER JOIN worst AS w ON t.step = w.step
    WHERE t.origin <> 'whole trace'
),

slowest AS (
    SELECT time, source, line
    FROM places
    ORDER BY preference, seconds DESC NULLS LAST, source, line
    LIMIT 1
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    w.step, w.before, w.after, w.ratio,
    s.time, s.source, s.line,
    printf('step %d: %.4g s (typically %.4g s before, %.4g s from here on)', w.step, j.seconds, w.before, w.after) AS text
FROM worst AS w
LEFT JOIN slowest AS s ON TRUE
LEFT JOIN (SELECT step, max(seconds) AS seconds FROM step_times GROUP BY step) AS j ON w.step = j.step
