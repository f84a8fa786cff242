/*---
title    = "Steps took longer for a while"
doc      = "A stretch of steps that took longer by a fifth or more, after which the step time came back: a machine that was shared, a busy file system or network, a device that cooled down. It is no fault of the run in its end."
severity = "note"
reads    = ["step_change", "step_times"]
summary  = "steps {step} to {until} took {after} s instead of {before} s, and then no longer"
[params]
least = { type = "DOUBLE", default = 1.2, doc = "Ratio of step times from which a stretch is worth a note." }
[returns]
rank = "INTEGER"
step = "BIGINT"
until = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
[[case]]
name = "slower from 60 to 74; a lasting change is no stretch"
given.step_change = """
step | before | after | ratio | transient
60   | 1      | 2.5   | 2.5   | true
75   | 2.5    | 1     | 0.4   | true
90   | 1      | 1.5   | 1.5   | false
"""
expect = """
step | until | before | after | ratio
60   | 74    | 1      | 2.5   | 2.5
"""
[[case]]
name = "steady"
given.step_change = "step"
expect = "step"
---*/
WITH ends AS (
    SELECT
        step, before, after, ratio, transient,
        coalesce(lead(step) OVER (ORDER BY step) - 1, (SELECT max(t.step) FROM step_times AS t)) AS until
    FROM step_change
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    step, until, before, after, ratio
FROM ends
WHERE transient AND ratio >= $least
ORDER BY ratio DESC, step
