/*---
title    = "Steps take longer in the end, which may be chance"
doc      = "A single change of the step time that is small (under 9 % and under five standard deviations of single steps, with less than 240 steps on one of its sides) or has no sharp edge: a machine that is shared now and then looks the same, so it is no fault yet."
severity = "note"
reads    = ["step_change"]
summary  = "a step takes {after} s from step {step} on, {ratio} times the {before} s before, for {held} steps: a machine that is shared now and then looks the same"
[params]
least = { type = "DOUBLE", default = 1.05, doc = "Ratio of step times under which a change is not worth a note." }
[returns]
rank = "INTEGER"
step = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
held = "BIGINT"
text = "VARCHAR"
[[case]]
name = "eight percent slower for the last 60 of 120 steps"
given.step_change = """
step | before | after | ratio | held | transient | lasts
13   | 0.1    | 0.3   | 3     | 12   | false     | true
61   | 0.1    | 0.108 | 1.08  | 60   | false     | false
30   | 0.1    | 0.4   | 4     | 90   | true      | true
70   | 0.1    | 0.104 | 1.04  | 50   | false     | true
80   | 0.1    | 0.104 | 1.04  | 40   | false     | false
"""
expect = """
step | held
61   | 60
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
    step, before, after, ratio, held,
    printf('typically %.4g s before, %.4g s from here on, for %d steps (240 on both sides settle it)', before, after, held) AS text
FROM step_change
WHERE ratio >= $least AND NOT lasts AND NOT transient
ORDER BY ratio DESC
LIMIT 1
