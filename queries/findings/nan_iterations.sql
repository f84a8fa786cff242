/*---
title    = "The loss of skipped iterations was not finite"
doc      = "Megatron counts skipped iterations whose loss was NaN or infinite (training.py, training_log: number of nan iterations): the forward pass saw it, before any scaling of the loss. A few belong to the search for a loss scale."
fault    = "nan_inf"
severity = "evidence"
reads    = ["skip_count"]
summary  = "{times} skipped iterations from step {step} on had a loss that was not finite"
[params]
least = { type = "BIGINT", default = 5, doc = "Iterations that are no search for a loss scale any more." }
[returns]
step = "BIGINT"
times = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "six of them"
given.skip_count = """
name           | step | value | source | line
nan_iterations | 10   | 0     | log    | 1
nan_iterations | 20   | 2     | log    | 2
nan_iterations | 30   | 4     | log    | 3
"""
expect = """
step | times | source | line
20   | 6     | log    | 2
"""
[[case]]
name = "a few"
given.skip_count = """
name           | step | value | source | line
nan_iterations | 10   | 2     | log    | 1
nan_iterations | 20   | 0     | log    | 2
"""
expect = "step | times"
---*/
WITH counted AS (
    SELECT step, max(value) AS times, min(source) AS source, min(line) AS line
    FROM skip_count
    WHERE name = 'nan_iterations' AND value > 0
    GROUP BY step
)

SELECT
    min(step) AS step,
    CAST(sum(times) AS BIGINT) AS times,
    arg_min(source, step) AS source,
    arg_min(line, step) AS line
FROM counted
HAVING sum(times) >= $least
