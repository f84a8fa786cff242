/*---
title    = "Steps take longer from one step on"
doc      = "A lasting change of the job's step time (max over ranks), found by change point analysis; a slow start and stretches that pass are left out, and so is a single small change in a short run (see step_time_open). It names no rank: all ranks slow down alike."
fault    = "throughput"
severity = "fault"
weight   = 1
reads    = ["step_change", "step_times"]
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
SELECT
    CAST(NULL AS INTEGER) AS rank,
    c.step, c.before, c.after, c.ratio,
    r.time, r.source, r.line,
    printf('step %d: %.4g s (typically %.4g s before, %.4g s from here on)', c.step, r.seconds, c.before, c.after) AS text
FROM step_change AS c
LEFT JOIN step_times AS r ON c.step = r.step
WHERE c.ratio >= $least AND c.lasts AND NOT c.transient
ORDER BY c.ratio DESC
LIMIT 1
