/*---
title = "Losses beside the training loss that are not finite"
doc   = "One row per name: the loss of a validation set, of a router or of another part, how often it was NaN or infinite, and where first."
keep  = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
name = "VARCHAR"
step = "BIGINT"
times = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "the validation loss, twice"
given.metrics = """
name      | step | value | text | source | line
eval_loss | 50   | NaN   | nan  | log    | 7
eval_loss | 100  | NaN   | nan  | log    | 9
eval_loss | 150  | 2     | 2    | log    | 11
"""
expect = """
name      | step | times | line | text
eval_loss | 50   | 2     | 7    | nan
"""
[[case]]
name = "the training loss and the loss scale have findings of their own"
given.metrics = """
name       | step | value | text | source | line
loss       | 50   | NaN   | nan  | log    | 7
loss_scale | 100  | inf   | inf  | log    | 9
eval_loss  | 150  | 2     | 2    | log    | 11
"""
expect = "name | step"
---*/
SELECT
    run_id,
    arg_min(rank, line) AS rank,
    name,
    arg_min(step, line) AS step,
    count(*) AS times,
    arg_min(time, line) AS time,
    source,
    min(line) AS line,
    arg_min(text, line) AS text
FROM metrics
WHERE contains(name, 'loss') AND name NOT IN ('loss', 'loss_scale') AND NOT isfinite(value)
GROUP BY run_id, name, source
QUALIFY row_number() OVER (PARTITION BY run_id, name ORDER BY min(step) NULLS LAST, source) = 1
ORDER BY run_id, name
