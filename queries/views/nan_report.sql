/*---
title = "Ranks that say themselves that a value is not finite"
doc   = "One row per message in which a process gives up for a NaN or Inf of its own. `alone`: the message speaks of values before any reduction (Megatron-Core's checks), fewer than half of the ranks say so, and every rank holds a whole model (tensor, pipeline and context parallel sizes are stated as 1), so that no other rank can have passed it on."
reads = ["events", "setting", "run_summary"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
alone = "BOOLEAN"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "two of eight ranks of a data-parallel job"
given.run_summary = """
name | world_size
run  | 8
"""
given.setting = """
key                          | value
tensor_model_parallel_size   | 1
pipeline_model_parallel_size | 1
context_parallel_size        | 1
"""
given.events = """
kind       | name  | rank | after_step | line | message
not_finite | local | 3    | 41         | 9    | found NaN
not_finite | local | 5    | 41         | 8    | found NaN
not_finite | local | 3    | 41         | 12   | found NaN
"""
expect = """
rank | alone | step | line
3    | true  | 42   | 9
5    | true  | 42   | 8
"""
[[case]]
name = "a pipeline may have passed it on"
given.run_summary = """
name | world_size
run  | 8
"""
given.setting = """
key                          | value
tensor_model_parallel_size   | 1
pipeline_model_parallel_size | 2
"""
given.events = """
kind       | name  | rank | after_step | line
not_finite | local | 3    | 41         | 9
"""
expect = """
rank | alone | step | line
3    | false | 42   | 9
"""
[[case]]
name = "all ranks, or the loss after the reduction"
given.run_summary = """
name | world_size
run  | 2
"""
given.setting = """
key                          | value
tensor_model_parallel_size   | 1
pipeline_model_parallel_size | 1
"""
given.events = """
kind       | name    | rank | after_step | line
not_finite | stopped | 0    | 41         | 9
not_finite | local   | 0    | 41         | 10
not_finite | local   | 1    | 41         | 11
"""
expect = """
rank | alone | step | line
0    | false | 42   | 9
1    | false | 42   | 11
"""
---*/
WITH sizes AS (
    SELECT
        run_id,
        count(DISTINCT key) FILTER (WHERE key <> 'context_parallel_size') AS stated,
        max(TRY_CAST(trim(value, '"') AS INTEGER)) AS largest
    FROM setting
    WHERE key IN ('tensor_model_parallel_size', 'pipeline_model_parallel_size', 'context_parallel_size')
    GROUP BY run_id
),

said AS (
    SELECT
        run_id, rank, name, coalesce(step, after_step + 1) AS step, time, source, line, message,
        count(DISTINCT rank) FILTER (WHERE name = 'local') OVER (PARTITION BY run_id) AS ranks
    FROM events
    WHERE kind = 'not_finite'
)

SELECT
    s.run_id, s.rank,
    coalesce(s.name = 'local' AND s.rank IS NOT NULL AND 2 * s.ranks < w.world_size AND z.stated = 2 AND z.largest = 1, FALSE)
        AS alone,
    s.step, s.time, s.source, s.line, s.message AS text
FROM said AS s
LEFT JOIN run_summary AS w ON s.run_id = w.name
LEFT JOIN sizes AS z ON s.run_id = z.run_id
QUALIFY row_number() OVER (PARTITION BY s.run_id, s.rank ORDER BY s.time NULLS LAST, s.source, s.line) = 1
ORDER BY s.run_id, s.rank
