/*---
title    = "The checkpoint to resume from was written by another number of ranks"
doc      = "DeepSpeed refuses to load ZeRO states with another data-parallel size, unless the checkpoint is elastic or universal."
severity = "warning"
fault    = "silent"
kind     = "state"
confidence = "medium"
reads    = ["checkpoint_tag", "process", "checkpoint_state"]
summary  = "checkpoint {tag} was written by {written} ranks, the run has {world_size}: {text}"
[returns]
tag = "VARCHAR"
written = "BIGINT"
world_size = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "four ranks wrote it, the run has two"
given.checkpoint_tag = """
checkpoint | tag | width | parallel | named | zero_stage | optimizers
c/t        | t   | 4     | 1        | true  | 1          | 4
"""
given.process = """
statement | world_size
world     | 2
"""
expect = """
tag | written | world_size | source | text
t   | 4       | 2          | c/t    | load it with 4 ranks, or convert it with ds_to_universal.py first
"""
[[case]]
name = "the same size, an old tag, and an elastic checkpoint"
given.checkpoint_tag = """
checkpoint | tag | width | parallel | named | zero_stage | optimizers
c/t        | t   | 2     | 2        | true  | 1          | 4
c/o        | o   | 8     | 1        | false | 1          | 8
"""
given.process = """
statement | world_size
world     | 4
"""
expect = "tag | written"
---*/
WITH world AS (
    SELECT run_id, min(world_size) AS smallest, max(world_size) AS largest
    FROM process
    WHERE statement = 'world' AND world_size IS NOT NULL
    GROUP BY run_id
),

flexible AS (
    SELECT DISTINCT run_id
    FROM checkpoint_state
    WHERE
        (
            key IN ('ds_config.zero_optimization.elastic_checkpoint', 'ds_config.checkpoint.load_universal')
            AND value = 'true'
        )
        -- MiCS keeps one copy of the state per group of ranks, so its shards are fewer than the ranks.
        OR (key = 'ds_config.zero_optimization.mics_shard_size' AND value <> '-1')
)

SELECT
    tag.tag, tag.width * tag.parallel AS written, CAST(world.largest AS BIGINT) AS world_size, tag.checkpoint AS source,
    'load it with ' || tag.width * tag.parallel || ' ranks, or convert it with ds_to_universal.py first' AS text
FROM checkpoint_tag AS tag
INNER JOIN world ON tag.run_id = world.run_id AND world.smallest = world.largest
ANTI JOIN flexible ON tag.run_id = flexible.run_id
WHERE tag.named AND tag.zero_stage >= 1 AND tag.optimizers > 0 AND tag.width * tag.parallel <> world.largest
ORDER BY tag.checkpoint
