/*---
title = "How far every rank got"
doc   = "The last step that each rank itself printed, and where; how many losses it printed."
keep = true
reads = ["metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
first_step = "BIGINT"
last_step = "BIGINT"
last_time = "BIGINT"
losses = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the last step of each rank"
given.metrics = """
rank | step | name | value | line | time
0    | 1    | loss | 3     | 1    | 10
0    | 2    | loss | 3     | 4    | 20
0    | 2    | lr   | 1     | 5    | 21
1    | 1    | loss | 3     | 2    | 11
1    | 2    | loss | 3     | 3    |
     | 9    | loss | 3     | 8    |
"""
expect = """
rank | first_step | last_step | last_time | losses | line
0    | 1          | 2         | 21        | 2      | 5
1    | 1          | 2         | 11        | 2      | 3
"""
---*/
WITH reached AS (
    SELECT
        run_id, rank,
        min(step) AS first_step,
        max(step) AS last_step,
        max(step) FILTER (WHERE time IS NOT NULL) AS stamped,
        count(*) FILTER (WHERE name = 'loss') AS losses
    FROM metrics
    WHERE rank IS NOT NULL AND step IS NOT NULL
    GROUP BY run_id, rank
),

marks AS (
    SELECT run_id, rank, unnest(list_distinct([last_step, stamped])) AS step FROM reached
),

-- A rank prints many values at one step: the last of them, so that the answer does not depend on who reads first.
prints AS (
    SELECT
        m.run_id, m.rank, m.step,
        max(m.time) AS time,
        last(m.source ORDER BY m.line, m.source) AS source,
        max(m.line) AS line
    FROM metrics AS m
    INNER JOIN marks AS k ON m.run_id = k.run_id AND m.rank = k.rank AND m.step = k.step
    GROUP BY m.run_id, m.rank, m.step
)

SELECT r.run_id, r.rank, r.first_step, r.last_step, s.time AS last_time, r.losses, p.source, p.line
FROM reached AS r
LEFT JOIN prints AS p ON r.run_id = p.run_id AND r.rank = p.rank AND r.last_step = p.step
LEFT JOIN prints AS s ON r.run_id = s.run_id AND r.rank = s.rank AND r.stamped = s.step
ORDER BY r.run_id, r.rank
