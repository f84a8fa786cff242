/*---
title = "Every checkpoint, and why no run should resume from it although its files are whole"
doc   = "What checkpoint_tag doubts, and what the findings say against the files of a checkpoint: shards that disagree, partitions that do not add up, weights that are not their rounded master copies, replicas that differ, pieces that are not where the index says, counters of another step."
reads = ["checkpoint_tag", "checkpoint_shard", "checkpoint_disagreement", "checkpoint_partition", "checkpoint_master", "checkpoint_replica", "checkpoint_piece_mismatch", "checkpoint_steps"]
materialize = true
[returns]
run_id = "VARCHAR"
checkpoint = "VARCHAR"
doubt = "VARCHAR"
[[case]]
name = "two findings on one, one by its folder, none"
given.checkpoint_tag = """
checkpoint | tag | doubt
c/a        | a   | its optimizers are of different steps
c/b        | b   |
c/d        | d   |
"""
given.checkpoint_shard = """
source | checkpoint
a0     | c/a
a1     | c/a
b0     | c/b
"""
given.checkpoint_disagreement = """
source | text
a0     | x
a1     | x
"""
given.checkpoint_partition = """
source | text
c/b    | y
"""
expect = """
checkpoint | doubt
c/a        | its optimizers are of different steps; its shards disagree
c/b        | its partitions do not add up
c/d        |
"""
---*/
WITH said AS (
    SELECT run_id, source, 'its shards disagree' AS doubt FROM checkpoint_disagreement
    UNION ALL
    SELECT run_id, source, 'its partitions do not add up' FROM checkpoint_partition
    UNION ALL
    SELECT run_id, source, 'its weights are not the rounded master weights' FROM checkpoint_master
    UNION ALL
    SELECT run_id, source, 'copies of one tensor differ' FROM checkpoint_replica
    UNION ALL
    SELECT run_id, source, 'its pieces are not where its index says' FROM checkpoint_piece_mismatch
    UNION ALL
    SELECT run_id, source, 'its step counters do not fit' FROM checkpoint_steps
),

placed AS (
    SELECT DISTINCT said.run_id, coalesce(shard.checkpoint, said.source) AS checkpoint, said.doubt
    FROM said
    LEFT JOIN checkpoint_shard AS shard ON said.run_id = shard.run_id AND said.source = shard.source
)

SELECT
    tag.run_id, tag.checkpoint,
    nullif(concat_ws('; ', any_value(tag.doubt), string_agg(placed.doubt, '; ' ORDER BY placed.doubt)), '') AS doubt
FROM checkpoint_tag AS tag
LEFT JOIN placed ON tag.run_id = placed.run_id AND tag.checkpoint = placed.checkpoint
GROUP BY tag.run_id, tag.checkpoint
ORDER BY tag.run_id, tag.checkpoint
