/*---
title    = "The loss left its course and did not come back"
doc      = "A rise of the loss from which it did not recover: the last losses of the run stand well above what was typical before, or values that are not finite followed. The weights were carried off; the loss is a mean over all ranks, so nobody is named."
fault    = "nan_inf"
severity = "warning"
kind     = "state"
reads    = ["loss_rise", "loss_steps", "loss_onset"]
summary  = "the loss left its course at step {step} ({baseline} was typical before) and ended at {final}"
[params]
settled = { type = "BIGINT", default = 20, doc = "Steps with a loss before it; the first ones of a run jump by themselves." }
least = { type = "DOUBLE", default = 1.5, doc = "Final losses over the typical ones before, from which on the run is lost." }
[returns]
rank = "INTEGER"
step = "BIGINT"
baseline = "DOUBLE"
final = "DOUBLE"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "in the first steps of a run"
given.loss_steps = """
step | loss | text | source | line
3    | 12   | 12.0 | log    | 10
4    | 40   | 40.0 | log    | 70
"""
given.loss_rise = """
step | baseline | highest | kind          | final
4    | 12       | 48      | not recovered | 19
"""
expect = "step | baseline | final"
[[case]]
name = "one that came back, and one that did not"
given.loss_steps = """
step | loss | text | source | line
6    | 90   | 90.0 | log    | 17
60   | 40   | 40.0 | log    | 70
"""
params = { settled = 1 }
given.loss_rise = """
step | baseline | highest | kind          | final
6    | 3        | 90      | recovered     | 5000
60   | 3        | 9000    | not recovered | 5000
"""
expect = """
step | baseline | final | text      | line
60   | 3        | 5000  | loss=40.0 | 70
"""
[[case]]
name = "a little above its course to the end; one that began with what is not finite"
given.loss_steps = """
step | loss | text | source | line
60   | 40   | 40.0 | log    | 70
90   | 40   | 40.0 | log    | 70
"""
given.loss_onset = """
step | loss
80   | nan
"""
given.loss_rise = """
step | baseline | highest | kind          | final
60   | 3        | 4       | not recovered | 4
90   | 3        | 9000    | not recovered | 5000
"""
expect = "step | baseline | final"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    r.step, r.baseline, r.final, l.time, l.source, l.line,
    'loss=' || l.text AS text
FROM loss_rise AS r
INNER JOIN loss_steps AS l ON r.step = l.step
WHERE
    r.kind = 'not recovered' AND r.final - r.baseline > ($least - 1) * abs(r.baseline)
    AND (SELECT count(*) FROM loss_steps AS p WHERE p.step < r.step) >= $settled
    AND coalesce(r.step < (SELECT min(o.step) FROM loss_onset AS o WHERE NOT isfinite(o.loss)), TRUE)
ORDER BY r.step
LIMIT 1
