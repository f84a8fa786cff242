/*---
title = "Every flat group of every optimizer shard: its elements, padding, moments and pieces"
doc   = "One row per optimizer file and parameter group (sub-group in stage 3). padding is null where the file states none; pieces_end is the last element that a piece of a parameter covers, gaps the number of breaks between pieces. keeps_padding: BF16_Optimizer wrote it, which leaves the padding in the tensor (runtime/bf16_optimizer.py of deepspeedai/DeepSpeed) and states no zero_stage."
reads = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_state", "checkpoint_parameter"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
checkpoint = "VARCHAR"
tag = "VARCHAR"
dp = "INTEGER"
mp = "INTEGER"
rank = "INTEGER"
zero_stage = "BIGINT"
group = "INTEGER"
numel = "BIGINT"
storage_numel = "BIGINT"
padding = "BIGINT"
keeps_padding = "BOOLEAN"
partitions = "BIGINT"
aligned = "BIGINT"
first_moment = "BIGINT"
second_moment = "BIGINT"
pieces = "BIGINT"
pieces_start = "BIGINT"
pieces_end = "BIGINT"
gaps = "BIGINT"
[[case]]
name = "one group of two pieces with padding"
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | mp | rank | zero_stage | status
a      | c/t        | t   | optimizer | 1  | 0  | 1    | 1          | complete
"""
given.checkpoint_tensor = """
source | path | kind       | group | numel | storage_numel | dtype
a      | p    | fp32       | 0     | 10    | 12            | float32
a      | q    | exp_avg    | 0     | 12    | 12            | float32
a      | r    | exp_avg_sq | 0     | 12    | 12            | float32
"""
given.checkpoint_state = """
source | key                                   | value
a      | optimizer_state_dict.group_paddings   | [2]
a      | optimizer_state_dict.partition_count  | [2]
a      | optimizer_state_dict.zero_stage       | 1
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel | start
a      | slice | 0     | 0        | w    | 6     | 0
a      | slice | 0     | 1        | b    | 4     | 6
"""
expect = """
group | numel | storage_numel | padding | keeps_padding | partitions | aligned | first_moment | second_moment | pieces | pieces_start | pieces_end | gaps
0     | 10    | 12            | 2       | false         | 2          | 0       | 12           | 12            | 2      | 0            | 10         | 0
"""
---*/
WITH lists AS (
    SELECT
        run_id, source,
        max(value) FILTER (WHERE key = 'optimizer_state_dict.group_paddings') AS paddings,
        max(value) FILTER (WHERE key = 'optimizer_state_dict.partition_count') AS counts,
        count(*) FILTER (WHERE key = 'optimizer_state_dict.zero_stage') = 0 AS keeps_padding,
        coalesce(sum(list_sum(list_transform(
            CASE WHEN starts_with(key, 'optimizer_state_dict.param_alignment_paddings') THEN regexp_extract_all(value, '\d+') END,
            LAMBDA x: TRY_CAST(x AS BIGINT)
        ))), 0) AS aligned
    FROM checkpoint_state
    WHERE regexp_matches(key, '^optimizer_state_dict\.(group_paddings|partition_count|param_alignment_paddings|zero_stage)')
    GROUP BY run_id, source
),

tensors AS (
    SELECT
        run_id, source, "group",
        max(numel) FILTER (WHERE kind = 'fp32') AS numel,
        max(storage_numel) FILTER (WHERE kind = 'fp32') AS storage_numel,
        max(numel) FILTER (WHERE kind = 'exp_avg') AS first_moment,
        max(numel) FILTER (WHERE kind = 'exp_avg_sq') AS second_moment
    FROM checkpoint_tensor
    WHERE kind IN ('fp32', 'exp_avg', 'exp_avg_sq') AND "group" IS NOT NULL
    GROUP BY run_id, source, "group"
),

chained AS (
    SELECT
        run_id, source, "group", "start", numel,
        lag("start" + numel) OVER (PARTITION BY run_id, source, "group" ORDER BY "start", "position") AS before
    FROM checkpoint_parameter
    WHERE kind = 'slice'
),

slices AS (
    SELECT
        run_id, source, "group", count(*) AS pieces, min("start") AS pieces_start, max("start" + numel) AS pieces_end,
        count(*) FILTER (WHERE before <> "start") AS gaps
    FROM chained
    GROUP BY run_id, source, "group"
)

SELECT
    shard.run_id, shard.source, shard.checkpoint, shard.tag, shard.dp, shard.mp, shard.rank, shard.zero_stage,
    tensors."group", tensors.numel, tensors.storage_numel,
    TRY_CAST(list_extract(regexp_extract_all(lists.paddings, '-?\d+'), tensors."group" + 1) AS BIGINT) AS padding,
    coalesce(lists.keeps_padding, TRUE) AS keeps_padding,
    TRY_CAST(
        CASE
            WHEN starts_with(lists.counts, '[') THEN list_extract(regexp_extract_all(lists.counts, '\d+'), tensors."group" + 1)
            ELSE lists.counts
        END AS BIGINT
    ) AS partitions,
    CAST(coalesce(lists.aligned, 0) AS BIGINT) AS aligned,
    tensors.first_moment, tensors.second_moment,
    slices.pieces, slices.pieces_start, slices.pieces_end, slices.gaps
FROM checkpoint_shard AS shard
INNER JOIN tensors ON shard.run_id = tensors.run_id AND shard.source = tensors.source
LEFT JOIN lists ON shard.run_id = lists.run_id AND shard.source = lists.source
LEFT JOIN slices
    ON tensors.run_id = slices.run_id AND tensors.source = slices.source AND tensors."group" = slices."group"
WHERE shard.role = 'optimizer' AND shard.status = 'complete'
ORDER BY shard.run_id, shard.source, tensors."group"
