/*---
title = "Numbers that two runs of the same job print alike"
doc   = "Losses, gradient norms, learning rates and loss scales per run, rank and step, as printed; the last print of a step counts. Only the first blocks of 64 steps in which the runs at hand do not all print the same are read: 16 of them, fewer where ranks are many, but one. Times, rates and memory are left out: they differ between any two runs."
materialize = true
reads = ["metric", "twin_block"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
name = "VARCHAR"
value = "DOUBLE"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the last print counts, and a step time does not"
given.metric = """
run_id | rank | step | name      | value | text | line
a      | 0    | 1    | loss      | 3     | 3.0  | 1
a      | 0    | 1    | loss      | 2     | 2.0  | 2
a      | 0    | 1    | step_time | 1     | 1    | 2
b      | 0    | 1    | loss      | 4     | 4.0  | 2
b      | 0    | 70   | loss      | 5     | 5.0  | 3
a      | 0    | 70   | loss      | 5     | 5.0  | 3
"""
given.twin_block = """
run_id | rank | name | block | digest
a      | 0    | loss | 0     | 7
b      | 0    | loss | 0     | 8
a      | 0    | loss | 1     | 9
b      | 0    | loss | 1     | 9
"""
expect = """
run_id | rank | step | name | text
a      | 0    | 1    | loss | 2.0
b      | 0    | 1    | loss | 4.0
"""
---*/
WITH differing AS (
    SELECT block
    FROM twin_block
    GROUP BY rank, name, block
    HAVING min(run_id) < max(run_id) AND min(digest) < max(digest)
),

series AS (
    SELECT count(*) AS n FROM (SELECT DISTINCT rank, name FROM twin_block)
),

chosen AS (
    SELECT block
    FROM (SELECT block, row_number() OVER (ORDER BY block) AS place FROM differing GROUP BY block)
    WHERE place <= greatest(1, least(16, 1024 // (SELECT n FROM series)))
),

marks AS (
    SELECT unnest(range(64 * block, 64 * block + 64)) AS step FROM chosen
)

SELECT
    m.run_id, m.rank, m.step, m.name,
    last(m.value ORDER BY coalesce(m.attempt, 0), m.source, m.line) AS value,
    last(m.text ORDER BY coalesce(m.attempt, 0), m.source, m.line) AS text,
    last(m.source ORDER BY coalesce(m.attempt, 0), m.source, m.line) AS source,
    last(m.line ORDER BY coalesce(m.attempt, 0), m.source, m.line) AS line
FROM metric AS m
INNER JOIN marks ON m.step = marks.step
WHERE m.text IS NOT NULL AND m.name IN (SELECT DISTINCT t.name FROM twin_block AS t)
GROUP BY m.run_id, m.rank, m.step, m.name
