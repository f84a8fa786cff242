/*---
title    = "Gradients are not finite again and again"
doc      = "At least five steps in a row have a gradient norm that is NaN or infinite, which is more than the search for a loss scale. The norm is taken after the reduction, so it names no rank."
fault    = "nan_inf"
severity = "fault"
weight   = 1
reads    = ["gradient_onset"]
summary  = "the gradient norm is {value} from {since} on, {in_a_row} times in a row"
[returns]
rank = "INTEGER"
step = "BIGINT"
value = "DOUBLE"
in_a_row = "BIGINT"
since = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a step, and a line of a log without steps"
given.gradient_onset = """
run_id | step | value | in_a_row | line | text
a      | 7    | NaN   | 9        | 31   | nan
b      |      | inf   | 9        | 30   | inf
"""
expect = """
rank | step | value | in_a_row | since   | line | text
     | 7    | nan   | 9        | step 7  | 31   | grad_norm=nan
     |      | inf   | 9        | line 30 | 30   | grad_norm=inf
"""
[[case]]
name = "finite"
expect = "step | value"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    step, value, in_a_row,
    coalesce('step ' || step, 'line ' || line) AS since,
    time, source, line,
    'grad_norm=' || text AS text
FROM gradient_onset
ORDER BY run_id
