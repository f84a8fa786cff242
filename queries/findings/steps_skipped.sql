/*---
title    = "Step after step is skipped"
doc      = "To the end of an attempt, no step updated the weights: the trainer counts each as skipped, or prints an overflow for each. Five of them are no search for a loss scale any more, unless they begin the run. Every rank skips a step together, so this names none."
fault    = "nan_inf"
severity = "fault"
weight   = 1
reads    = ["skip_count", "metric_span", "events", "run_summary"]
summary  = "no step from {step} on updated the weights: {in_a_row} in a row were skipped for values that are not finite"
[params]
least = { type = "BIGINT", default = 5, doc = "Steps in a row that are no search for a loss scale any more." }
search = { type = "BIGINT", default = 40, doc = "Steps from the first one on that the search for a loss scale may take: it starts from 2^16 or 2^32 and halves (DeepSpeed runtime/config.py, initial_scale_power)." }
[returns]
rank = "INTEGER"
step = "BIGINT"
in_a_row = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "an overflow at every step from 61 to the end"
params = { least = 3 }
given.metric_span = """
first_step | last_step
1          | 63
"""
given.events = """
kind     | after_step | line
overflow | 40         | 41
overflow | 60         | 61
overflow | 61         | 63
overflow | 62         | 65
"""
expect = """
step | in_a_row | line
61   | 3        | 61
"""
[[case]]
name = "a step line for every tenth step, and ten overflows between the last two"
given.metric_span = """
first_step | last_step
10         | 24
"""
given.events = """
kind     | after_step | line
overflow | 20         | 3
overflow | 20         | 4
overflow | 20         | 5
overflow | 20         | 6
"""
params = { least = 3 }
expect = """
step | in_a_row | line
21   | 4        | 3
"""
[[case]]
name = "eight ranks print one overflow into one file: that is one step"
given.run_summary = """
world_size
8
"""
given.metric_span = """
first_step | last_step
10         | 24
"""
given.events = """
kind     | after_step | line
overflow | 20         | 3
overflow | 20         | 4
overflow | 20         | 5
overflow | 20         | 6
overflow | 20         | 7
overflow | 20         | 8
overflow | 20         | 9
overflow | 20         | 10
"""
params = { least = 3 }
expect = "step"
[[case]]
name = "DeepSpeed counts the skipped steps: its count goes before the lines"
given.metric_span = """
first_step | last_step
10         | 40
"""
given.skip_count = """
name          | step | value | line
skipped_steps | 10   | 0     | 1
skipped_steps | 20   | 2     | 2
skipped_steps | 30   | 12    | 3
skipped_steps | 40   | 22    | 4
"""
given.events = """
kind     | after_step | line
overflow | 10         | 8
"""
expect = """
step | in_a_row | line
21   | 20       | 3
"""
[[case]]
name = "Megatron counts per interval"
given.metric_span = """
first_step | last_step
10         | 30
"""
given.skip_count = """
name               | step | value | line
skipped_iterations | 10   | 0     | 1
skipped_iterations | 20   | 9     | 2
skipped_iterations | 30   | 10    | 3
"""
expect = """
step | in_a_row | line
21   | 10       | 3
"""
[[case]]
name = "the search at the start of an attempt, and one that steps were made after"
params = { least = 3 }
given.metric_span = """
attempt | first_step | last_step
0       | 4          | 4
1       | 60         | 80
"""
given.skip_count = """
name          | attempt | step | value | line
skipped_steps | 0       | 4    | 4     | 1
skipped_steps | 1       | 60   | 0     | 2
skipped_steps | 1       | 70   | 10    | 3
skipped_steps | 1       | 80   | 11    | 4
"""
expect = "step"
---*/
WITH span AS (
    SELECT attempt, min(first_step) AS first_step, max(last_step) AS last_step FROM metric_span GROUP BY attempt
),

-- DeepSpeed's count runs on (step=.., skipped=..), that of Megatron begins again at every line.
counts AS (
    SELECT attempt, name, step, value, source, line, time FROM skip_count WHERE name <> 'nan_iterations'
),

between_lines AS (
    SELECT
        attempt, step, source, line, time,
        coalesce(lag(step) OVER w, CASE name WHEN 'skipped_steps' THEN 0 ELSE step - value END) AS after_step,
        value - CASE name WHEN 'skipped_steps' THEN coalesce(lag(value) OVER w, 0) ELSE 0 END AS skipped
    FROM counts
    WINDOW w AS (PARTITION BY attempt, name ORDER BY step)
),

-- Lines that name no rank may be one step's, printed by all.
overflows AS (
    SELECT
        e.attempt,
        coalesce(e.step, e.after_step) AS after_step,
        greatest(1, count(*) // CASE WHEN e.rank IS NULL THEN (SELECT coalesce(max(s.world_size), 1) FROM run_summary AS s) ELSE 1 END)
            AS skipped,
        min(e.source) AS source,
        min(e.line) AS line,
        min(e.time) AS time
    FROM events AS e
    WHERE
        e.kind = 'overflow' AND e.name IS DISTINCT FROM 'tensor' AND coalesce(e.step, e.after_step) IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM counts)
    GROUP BY e.attempt, e.source, e.rank, coalesce(e.step, e.after_step)
),

skipped AS (
    SELECT attempt, after_step, step AS last_step, source, line, time
    FROM between_lines
    WHERE skipped > 0 AND skipped >= step - after_step
    UNION ALL
    SELECT attempt, after_step, after_step + skipped AS last_step, source, line, time FROM overflows
),

reached AS (
    SELECT
        attempt, after_step, last_step, source, line, time,
        max(last_step)
            OVER (PARTITION BY attempt ORDER BY after_step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            AS before
    FROM skipped
),

stretches AS (
    SELECT
        attempt, after_step, last_step, source, line, time,
        count(*) FILTER (WHERE before IS NULL OR before < after_step) OVER (PARTITION BY attempt ORDER BY after_step) AS stretch
    FROM reached
),

rows_of AS (
    SELECT
        attempt,
        min(after_step) + 1 AS step,
        max(last_step) AS last_step,
        arg_min(source, after_step) AS source,
        arg_min(line, after_step) AS line,
        arg_min(time, after_step) AS time
    FROM stretches
    GROUP BY attempt, stretch
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    r.step,
    least(r.last_step, s.last_step) - r.step + 1 AS in_a_row,
    r.time, r.source, r.line,
    'skipped for values that are not finite, to the last step' AS text
FROM rows_of AS r
INNER JOIN span AS s ON r.attempt IS NOT DISTINCT FROM s.attempt
WHERE
    -- The line of the last step may be missing, or come before its overflow.
    r.last_step >= s.last_step - 1
    AND least(r.last_step, s.last_step) - r.step + 1 >= $least
    AND (r.step > s.first_step + 1 OR r.last_step - r.step >= $search)
ORDER BY r.attempt DESC, r.step
LIMIT 1
