/*---
title = "Losses of all ranks where the first one is not finite"
doc   = "One row per rank that printed a loss at the step, and in the attempt, in which a loss of the run first was NaN or infinite. The last value that a rank printed for a step counts. Where no loss states its step, the first one that is not finite, alone: nothing says what other ranks had then."
keep = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
attempt = "INTEGER"
step = "BIGINT"
loss = "DOUBLE"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
[[case]]
name = "one rank turns at step 2, the other later"
given.metrics = """
rank | step | name | value | text | line
0    | 1    | loss | 3     | 3    | 1
1    | 1    | loss | 3     | 3    | 2
0    | 2    | loss | 3     | 3    | 3
1    | 2    | loss | NaN   | nan  | 4
0    | 3    | loss | NaN   | nan  | 5
1    | 3    | lr   | NaN   | nan  | 6
"""
expect = """
rank | step | loss | text | line
0    | 2    | 3    | 3    | 3
1    | 2    | nan  | nan  | 4
"""
[[case]]
name = "a value that was printed over does not count; the first attempt comes first"
given.metrics = """
rank | attempt | step | name | value | text | line
0    | 0       | 1    | loss | NaN   | nan  | 1
0    | 0       | 1    | loss | 3     | 3    | 2
0    | 0       | 9    | loss | NaN   | nan  | 3
0    | 1       | 5    | loss | NaN   | nan  | 7
0    | 1       | 9    | loss | 3     | 3    | 8
"""
expect = """
rank | attempt | step | loss | line
0    | 0       | 9    | nan  | 3
"""
[[case]]
name = "what a restart printed at that step says nothing of the attempt before"
given.metrics = """
rank | attempt | step | name | value | text | line
0    | 0       | 2    | loss | NaN   | nan  | 3
1    | 0       | 2    | loss | NaN   | nan  | 4
0    | 1       | 2    | loss | 3     | 3    | 8
1    | 1       | 2    | loss | 3     | 3    | 9
"""
expect = """
rank | attempt | step | loss | line
0    | 0       | 2    | nan  | 3
1    | 0       | 2    | nan  | 4
"""
[[case]]
name = "losses without a step"
given.metrics = """
rank | attempt | name | value | text | source | line
0    | 0       | loss | 3     | 3    | log    | 1
0    | 0       | loss | NaN   | nan  | log    | 2
0    | 0       | loss | NaN   | nan  | log    | 3
"""
expect = """
rank | attempt | step | loss | source | line
0    | 0       |      | nan  | log    | 2
"""
[[case]]
name = "finite"
given.metrics = """
rank | step | name | value | text
0    | 1    | loss | 3     | 3
"""
expect = "rank"
---*/
-- Only the first steps in question are read with all ranks: a large run that turned has them to its end.
WITH turned AS (
    SELECT run_id, attempt, step
    FROM metrics
    WHERE name = 'loss' AND NOT isfinite(value) AND step IS NOT NULL
    GROUP BY run_id, attempt, step
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY attempt NULLS FIRST, step) <= 100
),

around AS (
    SELECT
        m.run_id, m.rank, m.attempt, m.step,
        arg_max(m.value, m.line) AS loss,
        arg_max(m.text, m.line) AS text,
        arg_max(m.source, m.line) AS source,
        max(m.line) AS line,
        max(m.time) AS time
    FROM metrics AS m
    INNER JOIN turned AS t ON m.run_id = t.run_id AND m.step = t.step AND m.attempt IS NOT DISTINCT FROM t.attempt
    WHERE m.name = 'loss'
    GROUP BY m.run_id, m.rank, m.attempt, m.step
),

onset AS (
    SELECT run_id, attempt, step
    FROM around
    WHERE NOT isfinite(loss)
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY attempt NULLS FIRST, step, rank) = 1
)

SELECT a.run_id, a.rank, a.attempt, a.step, a.loss, a.text, a.source, a.line, a.time
FROM around AS a
INNER JOIN onset AS o ON a.run_id = o.run_id AND a.step = o.step AND a.attempt IS NOT DISTINCT FROM o.attempt
UNION ALL
-- A trainer may print its losses without the step (Hugging Face, trainer.py, without a progress bar).
SELECT m.run_id, m.rank, m.attempt, m.step, m.value AS loss, m.text, m.source, m.line, m.time
FROM metrics AS m
WHERE
    m.name = 'loss' AND m.step IS NULL AND NOT isfinite(m.value)
    AND m.run_id NOT IN (SELECT DISTINCT s.run_id FROM metrics AS s WHERE s.name = 'loss' AND s.step IS NOT NULL)
QUALIFY row_number() OVER (PARTITION BY m.run_id ORDER BY m.attempt NULLS FIRST, m.time NULLS LAST, m.source, m.line) = 1
ORDER BY run_id, rank
