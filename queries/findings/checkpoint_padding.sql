/*---
title    = "The padding of a checkpoint holds values"
doc      = "Padding holds zeros, because no gradient ever reaches it (runtime/zero/stage_1_and_2.py and stage3.py of deepspeedai/DeepSpeed). Only stage 3's master weights are not cleared when they are allocated (runtime/zero/partition_parameters.py), so there it is asked that padding which was zero before and is zero later is zero in between, and that moments are zero where the weights are, or where no weight decay could move them. 1-bit optimizers, which compress the moments of padding too, are left out."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_shard", "checkpoint_state", "checkpoint_tensor"]
summary  = "padding of checkpoint {tag} is not zero: {text}"
[returns]
tag = "VARCHAR"
shard_rank = "INTEGER"
group = "INTEGER"
source = "VARCHAR"
offset = "BIGINT"
text = "VARCHAR"
[[case]]
name = "values in the padding of stages 1 and 3, and of stage 3's master weights between two tags where it is zero"
given.checkpoint_shard = """
source | checkpoint | root | tag | tag_step | role      | dp | mp | rank | status   | zero_stage
a      | c/a        | c    | a   | 1        | optimizer | 1  | 0  | 1    | complete | 1
b      | d/b        | d    | b   | 1        | optimizer | 1  | 0  | 1    | complete | 3
e      | d/e        | d    | e   | 2        | optimizer | 1  | 0  | 1    | complete | 3
f      | d/f        | d    | f   | 3        | optimizer | 1  | 0  | 1    | complete | 3
"""
given.checkpoint_tensor = """
source | path | kind    | group | numel | padding | padding_filled | padding_offset
a      | m    | exp_avg | 0     | 12    | 2       | 1              | 64
b      | p    | fp32    | 0     | 12    | 2       | 0              |
b      | m    | exp_avg | 0     | 12    | 2       | 2              | 64
e      | p    | fp32    | 0     | 12    | 2       | 1              | 80
e      | m    | exp_avg | 0     | 12    | 2       | 0              |
f      | p    | fp32    | 0     | 12    | 2       | 0              |
"""
expect = """
tag | shard_rank | group | source | offset | text
a   | 1          | 0     | a      | 64     | a, group 0: 1 of 2 elements of padding in m are not zero
b   | 1          | 0     | b      | 64     | b, group 0: 2 of 2 elements of padding in m are not zero
e   | 1          | 0     | e      | 80     | e, group 0: 1 of 2 elements of padding in p are not zero, as they are in the checkpoints before and after
"""
[[case]]
name = "padding of stage 3 that was never cleared, its moments under weight decay; a 1-bit optimizer; not read"
given.checkpoint_shard = """
source | checkpoint | root | tag | tag_step | role      | dp | mp | rank | status   | zero_stage
a      | c/a        | c    | a   | 1        | optimizer | 1  | 0  | 1    | complete | 1
b      | d/b        | d    | b   | 1        | optimizer | 1  | 0  | 1    | complete | 3
e      | d/e        | d    | e   | 2        | optimizer | 1  | 0  | 1    | complete | 3
"""
given.checkpoint_state = """
source | key                                                               | value
a      | ds_config.optimizer.type                                          | "OneBitAdam"
b      | optimizer_state_dict.optimizer_state_dict.param_groups.0.weight_decay | 0.01
"""
given.checkpoint_tensor = """
source | path | kind    | group | numel | padding | padding_filled | padding_offset
a      | m    | exp_avg | 0     | 12    | 2       | 1              | 64
b      | p    | fp32    | 0     | 12    | 2       | 2              | 80
b      | m    | exp_avg | 0     | 12    | 2       | 2              | 64
e      | p    | fp32    | 0     | 12    |         |                |
"""
expect = "tag | source"
---*/
WITH settings AS (
    SELECT
        run_id, source,
        bool_or(key = 'ds_config.optimizer.type' AND regexp_matches(lower(value), 'onebit|zeroone')) AS compressed,
        count(*) FILTER (WHERE regexp_matches(key, '\.weight_decay$')) = 0
        OR bool_or(regexp_matches(key, '\.weight_decay$') AND TRY_CAST(value AS DOUBLE) IS DISTINCT FROM 0) AS decays
    FROM checkpoint_state
    WHERE key = 'ds_config.optimizer.type' OR regexp_matches(key, '\.weight_decay$')
    GROUP BY run_id, source
),

padded AS (
    SELECT
        shard.tag, shard.rank, shard.zero_stage, tensor.source, tensor.path, tensor.kind, tensor."group",
        tensor.padding, tensor.padding_filled, tensor.padding_offset,
        coalesce(settings.compressed, FALSE) AS compressed, coalesce(settings.decays, TRUE) AS decays,
        bool_or(tensor.kind = 'fp32' AND tensor.padding_filled = 0)
            OVER (PARTITION BY tensor.run_id, tensor.source, tensor."group") AS cleared,
        coalesce(bool_or(tensor.padding_filled = 0) OVER (
            series ORDER BY shard.tag_step RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP
        ), FALSE) AS cleared_before,
        coalesce(bool_or(tensor.padding_filled = 0) OVER (
            series ORDER BY shard.tag_step RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE GROUP
        ), FALSE) AS cleared_after
    FROM checkpoint_tensor AS tensor
    INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
    LEFT JOIN settings ON tensor.run_id = settings.run_id AND tensor.source = settings.source
    WHERE tensor.padding > 0 AND shard.role = 'optimizer' AND shard.status = 'complete'
    WINDOW series AS (PARTITION BY shard.run_id, shard.root, shard.dp, shard.mp, tensor.kind, tensor."group", tensor.padding)
)

SELECT
    tag, rank AS shard_rank, "group", source, padding_offset AS "offset",
    source || ', group ' || "group" || ': ' || padding_filled || ' of ' || padding || ' elements of padding in ' || path || ' are not zero'
    || CASE WHEN zero_stage = 3 AND kind = 'fp32' THEN ', as they are in the checkpoints before and after' ELSE '' END
        AS text
FROM padded
WHERE
    padding_filled > 0 AND NOT compressed
    AND CASE
        WHEN coalesce(zero_stage, 1) < 3 THEN TRUE
        WHEN kind = 'fp32' THEN cleared_before AND cleared_after
        ELSE coalesce(cleared, FALSE) OR NOT decays
    END
ORDER BY source, "group", text
