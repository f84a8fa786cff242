/*---
title    = "The loss rose far above its course"
severity = "note"
reads    = ["loss_rise", "loss_steps"]
summary  = "the loss rose from {baseline} to {highest} at step {step}: {kind}"
[returns]
rank = "INTEGER"
step = "BIGINT"
baseline = "DOUBLE"
highest = "DOUBLE"
kind = "VARCHAR"
back_at = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a rise, and where it stands"
given.loss_steps = """
step | loss | text | source | line
6    | 90   | 90.0 | log    | 17
"""
given.loss_rise = """
step | baseline | highest | kind      | back_at
6    | 3        | 90      | recovered | 7
"""
expect = """
step | baseline | highest | kind      | back_at | text      | source | line
6    | 3        | 90      | recovered | 7       | loss=90.0 | log    | 17
"""
[[case]]
name = "none"
given.loss_steps = """
step | loss
6    | 3
"""
expect = "step | baseline | highest | kind"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    r.step, r.baseline, r.highest, r.kind, r.back_at, l.time, l.source, l.line,
    'loss=' || l.text AS text
FROM loss_rise AS r
INNER JOIN loss_steps AS l ON r.step = l.step
ORDER BY r.step
