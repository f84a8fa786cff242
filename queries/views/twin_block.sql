/*---
title = "What two runs of the same job print alike, folded into blocks of steps"
doc   = "One row per run, rank, metric and block of 64 steps: a digest of the steps and values that were printed, and the steps as bits, the lowest for the block's first. Where the digests of two runs are equal, so is all that they print there. Losses, gradient norms, learning rates and loss scales; times, rates and memory differ between any two runs."
keep = true
reads = ["metric"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
name = "VARCHAR"
block = "BIGINT"
digest = "UBIGINT"
steps = "UBIGINT"
[[case]]
name = "two blocks; a step time does not count"
given.metric = """
rank | step | name      | value | text
0    | 1    | loss      | 3     | 3.0
0    | 2    | loss      | 2     | 2.0
0    | 64   | loss      | 1     | 1.0
0    | 65   | step_time | 1     | 1
"""
expect = """
rank | name | block | steps
0    | loss | 0     | 6
0    | loss | 1     | 1
"""
---*/
-- A handful of names: to test each row by the patterns takes longer than all the rest.
WITH chosen AS (
    SELECT name
    FROM (SELECT DISTINCT name FROM metric)
    WHERE
        regexp_matches(lower(name), 'loss|grad_norm|perplexity|^lr$|learning_rate')
        AND NOT regexp_matches(lower(name), 'time|second|eval|valid|test')
)

SELECT
    m.run_id, m.rank, m.name, m.step // 64 AS block,
    bit_xor(hash(m.step, m.value)) AS digest,
    bit_or(CAST(1 AS UBIGINT) << CAST(m.step % 64 AS UBIGINT)) AS steps
FROM metric AS m
INNER JOIN chosen AS c ON m.name = c.name
WHERE m.step >= 0 AND m.value IS NOT NULL
GROUP BY m.run_id, m.rank, m.name, block
ORDER BY m.run_id, m.rank, m.name, block
