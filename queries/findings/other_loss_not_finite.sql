/*---
title    = "A loss beside the training loss is not finite"
doc      = "The loss of a validation set, of a router or of another part that a trainer prints by a name of its own. It says nothing of the training loss: an average over nothing is NaN too."
severity = "note"
reads    = ["other_loss"]
summary  = "{name} is {text} {times} times, first at {since}"
[returns]
rank = "INTEGER"
name = "VARCHAR"
step = "BIGINT"
since = "VARCHAR"
times = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "with a step, and in a log without"
given.other_loss = """
name      | step | times | line | text
eval_loss | 50   | 2     | 7    | nan
moe_loss  |      | 1     | 9    | inf
"""
expect = """
name      | step | since   | times | line | text
eval_loss | 50   | step 50 | 2     | 7    | nan
moe_loss  |      | line 9  | 1     | 9    | inf
"""
[[case]]
name = "none"
expect = "name | step"
---*/
SELECT rank, name, step, coalesce('step ' || step, 'line ' || line) AS since, times, time, source, line, text
FROM other_loss
ORDER BY name
