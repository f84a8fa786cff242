/*---
title    = "The trainer gave up: its loss scale could fall no further"
doc      = "The dynamic loss scale was at its minimum and gradients overflowed still, or too many steps in a row were skipped; the trainer ended the run for it. All ranks scale and skip together, so none is named."
fault    = "nan_inf"
severity = "fault"
reads    = ["events"]
summary  = "values are not finite at any loss scale: {text}"
[returns]
rank = "INTEGER"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "two ranks say it"
given.events = """
kind       | role | rank | after_step | line | message
loss_scale | root | 1    | 41         | 9    | Current loss scale already at minimum
loss_scale | root | 0    | 41         | 8    | Current loss scale already at minimum
"""
expect = """
rank | step | line
     | 41   | 8
     | 41   | 9
"""
[[case]]
name = "a scale that changed"
given.events = """
kind       | role    | after_step | line
loss_scale | context | 41         | 8
"""
expect = "step | line"
---*/
-- The exception that ends the run stands one step later at most, and is what followed.
SELECT CAST(NULL AS INTEGER) AS rank, coalesce(step, after_step) AS step, time, source, line, coalesce(message, 'the loss scale is at its minimum') AS text
FROM events
WHERE kind = 'loss_scale' AND role = 'root'
ORDER BY time NULLS LAST, source, line
