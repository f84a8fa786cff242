/*---
title    = "The partitions of a checkpoint do not add up"
doc      = "Stages 1 and 2: elements plus padding are equal in all shards of a group, the moments have the length of the partition with or without its padding, pieces of parameters lie end to end, all partitions together hold all parameters. Stage 3: every sub-group is equally long on all ranks, and all together hold every parameter's share. Padding holds zeros, because no gradient ever reaches it; only stage 3's master weights are not cleared when they are allocated (runtime/zero/partition_parameters.py), so there it is asked that padding which was zero before and is zero later is zero in between, and that moments are zero where the weights are, or where no weight decay could move them. 1-bit optimizers, which compress the moments of padding too, are left out. Sources: runtime/zero/stage_1_and_2.py, stage3.py and utils/zero_to_fp32.py of deepspeedai/DeepSpeed."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_group", "checkpoint_parameter", "checkpoint_shard", "checkpoint_state", "checkpoint_tag", "checkpoint_tensor"]
summary  = "partitions of checkpoint {tag} do not add up: {text}"
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
[[case]]
name = "of two shards with different sums the one that fits the parameters is right"
given.checkpoint_group = """
source | checkpoint | tag | dp | mp | rank | zero_stage | group | numel | storage_numel | padding | keeps_padding | partitions | aligned | first_moment | second_moment | pieces_start | pieces_end | gaps
a      | c/t        | t   | 0  | 0  | 0    | 1          | 0     | 6     | 6             | 0       | false         | 2          | 0       | 6            | 6             | 0            | 6          | 0
b      | c/t        | t   | 1  | 0  | 1    | 1          | 0     | 5     | 8             | 3       | false         | 2          | 0       | 5            | 5             | 0            | 5          | 0
"""
given.checkpoint_shard = """
source | checkpoint | tag | role  | mp
m      | c/t        | t   | model | 0
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel
m      | shape | 0     | 0        | w    | 11
"""
expect = """
tag | shard_rank | group | source | text
t   | 1          | 0     | b      | b, group 0: 5 elements and 3 of padding where the other shard has another sum
"""
[[case]]
name = "a padding that was changed, and a moment that is too short"
given.checkpoint_group = """
source | checkpoint | tag | dp | mp | rank | zero_stage | group | numel | storage_numel | padding | keeps_padding | partitions | aligned | first_moment | second_moment | pieces | pieces_start | pieces_end | gaps
a      | c/t        | t   | 0  | 0  | 0    | 1          | 0     | 12    | 12            | 0       | false         | 3          | 0       | 12           | 12            | 1      | 0            | 12         | 0
b      | c/t        | t   | 1  | 0  | 1    | 1          | 0     | 12    | 12            | 3       | false         | 3          | 0       | 12           | 9             | 1      | 0            | 12         | 0
d      | c/t        | t   | 2  | 0  | 2    | 1          | 0     | 10    | 12            | 2       | false         | 3          | 0       | 12           | 12            | 1      | 0            | 10         | 0
"""
expect = """
tag | shard_rank | group | source | text
t   | 1          | 0     | b      | b, group 0: 12 elements and 3 of padding where most shards have 12 together
t   | 1          | 0     | b      | b, group 0: moments of 12 and 9 elements for a partition of 12
"""
[[case]]
name = "padding on the last rank only, and a total that fits"
given.checkpoint_group = """
source | checkpoint | tag | dp | mp | rank | zero_stage | group | numel | storage_numel | padding | keeps_padding | partitions | aligned | first_moment | second_moment | pieces | pieces_start | pieces_end | gaps
a      | c/t        | t   | 0  | 0  | 0    | 1          | 0     | 12    | 12            | 0       | false         | 2          | 0       | 12           | 12            | 2      | 0            | 12         | 0
b      | c/t        | t   | 1  | 0  | 1    | 1          | 0     | 10    | 12            | 2       | false         | 2          | 0       | 12           | 12            | 1      | 0            | 10         | 0
"""
given.checkpoint_shard = """
source | checkpoint | role  | mp
m      | c/t        | model | 0
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel
m      | shape | 0     | 0        | w    | 22
"""
given.checkpoint_tag = """
checkpoint | tag | width | complete
c/t        | t   | 2     | true
"""
expect = "tag | source"
[[case]]
name = "BF16_Optimizer keeps the padding in the tensor; a group with fewer elements than ranks"
given.checkpoint_group = """
source | checkpoint | tag | dp | mp | rank | zero_stage | group | numel | padding | keeps_padding | partitions | aligned
a      | c/t        | t   | 0  | 0  | 0    | 1          | 0     | 12    | 0       | true          | 2          | 0
b      | c/t        | t   | 1  | 0  | 1    | 1          | 0     | 12    | 2       | true          | 2          | 0
a      | c/u        | u   | 0  | 0  | 0    | 1          | 0     | 2     | 0       | false         | 8          | 0
b      | c/u        | u   | 7  | 0  | 7    | 1          | 0     | 0     | 15      | false         | 8          | 0
"""
expect = "tag | source"
[[case]]
name = "all shards agree with each other, but not with the model"
given.checkpoint_group = """
source | checkpoint | tag | dp | mp | rank | zero_stage | group | numel | padding | partitions | aligned
a      | c/t        | t   | 0  | 0  | 0    | 3          | 0     | 10    |         | 2          | 0
b      | c/t        | t   | 1  | 0  | 1    | 3          | 0     | 10    |         | 2          | 0
"""
given.checkpoint_shard = """
source | checkpoint | role        | mp | dp
m      | c/t        | model_shard | 0  | 0
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel
m      | shape | 0     | 0        | w    | 13
m      | shape | 0     | 1        | b    | 3
"""
given.checkpoint_tag = """
checkpoint | tag | width | complete
c/t        | t   | 2     | true
"""
expect = """
tag | shard_rank | group | source | text
t   |            |       | c/t    | c/t: the partitions hold 20 elements, the parameters make 18
"""
---*/
WITH sound AS (
    SELECT
        g.*,
        -- A group with fewer elements than ranks has padding on many ranks and states it on the last: no rule holds.
        bool_or(numel = 0) OVER (PARTITION BY run_id, checkpoint, mp, "group") AS tiny,
        numel + CASE WHEN keeps_padding THEN 0 ELSE coalesce(padding, 0) END AS span
    FROM checkpoint_group AS g
),

wanted AS (
    SELECT shard.run_id, shard.checkpoint, shard.mp, p."group", sum(p.numel) AS numel
    FROM checkpoint_shard AS shard
    INNER JOIN checkpoint_parameter AS p ON shard.run_id = p.run_id AND shard.source = p.source AND p.kind = 'shape'
    WHERE shard.role = 'model'
    GROUP BY shard.run_id, shard.checkpoint, shard.mp, p."group"
),

spans AS (
    SELECT
        sound.*,
        mode(span) OVER (PARTITION BY run_id, checkpoint, mp, "group") AS usual,
        count(*) OVER (PARTITION BY run_id, checkpoint, mp, "group") AS files,
        count(*) OVER (PARTITION BY run_id, checkpoint, mp, "group", span) AS agreeing,
        -- Of two shards that differ, the one that fits the parameters is right (stage_1_and_2.py: groups are padded to twice the ranks).
        coalesce(span = due, FALSE) AS fits
    FROM (
        SELECT sound.*, (wanted.numel + 2 * sound.partitions - 1) // (2 * sound.partitions) * 2 AS due
        FROM sound
        LEFT JOIN wanted
            ON
                sound.run_id = wanted.run_id AND sound.checkpoint = wanted.checkpoint AND sound.mp = wanted.mp
                AND sound."group" = wanted."group" AND sound.aligned = 0 AND sound.zero_stage IN (1, 2)
    ) AS sound
    WHERE NOT tiny
),

local AS (
    SELECT
        run_id, checkpoint, tag, rank AS shard_rank, "group", source, unnest([
            CASE
                WHEN agreeing = files THEN NULL
                WHEN 2 * agreeing > files OR (2 * agreeing = files AND files = 2 AND fits) THEN NULL
                ELSE
                    numel || ' elements' || coalesce(' and ' || padding || ' of padding', '')
                    || ' where ' || CASE WHEN 2 * agreeing < files THEN 'most shards have ' || usual ELSE 'the other shard has another sum' END
                    || CASE WHEN 2 * agreeing < files THEN ' together' ELSE '' END
            END,
            CASE
                WHEN first_moment <> second_moment OR (zero_stage < 3 AND first_moment NOT IN (numel, span))
                    THEN 'moments of ' || first_moment || ' and ' || second_moment || ' elements for a partition of ' || numel
            END,
            CASE
                WHEN zero_stage IN (1, 2) AND storage_numel > numel AND storage_numel <> span AND agreeing < files
                    THEN 'its storage has ' || storage_numel || ' elements, not ' || span
            END,
            CASE WHEN pieces_start <> 0 OR (gaps > 0 AND aligned = 0) THEN 'its pieces of parameters do not lie end to end' END,
            CASE
                WHEN aligned = 0 AND pieces_end NOT IN (numel, numel - coalesce(padding, 0))
                    THEN 'its pieces of parameters end at ' || pieces_end || ', the partition at ' || numel
            END
        ]) AS problem
    FROM spans
),

held AS (
    SELECT
        run_id, checkpoint, any_value(tag) AS tag, mp, max(zero_stage) AS zero_stage,
        sum(numel) AS numel, sum(padding) AS padding, max(aligned) AS aligned,
        min(partitions) AS narrowest, count(DISTINCT dp) AS files
    FROM sound
    GROUP BY run_id, checkpoint, mp
    HAVING NOT bool_or(tiny)
),

models AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.mp, shard.source, tag.width,
        sum(p.numel) AS numel,
        sum((p.numel + tag.width - 1) // tag.width * tag.width) AS shared
    FROM checkpoint_shard AS shard
    INNER JOIN checkpoint_tag AS tag ON shard.run_id = tag.run_id AND shard.checkpoint = tag.checkpoint
    INNER JOIN checkpoint_parameter AS p ON shard.run_id = p.run_id AND shard.source = p.source AND p.kind = 'shape'
    WHERE shard.role IN ('model', 'model_shard') AND coalesce(shard.dp, 0) = 0 AND tag.complete
    GROUP BY shard.run_id, shard.checkpoint, shard.mp, shard.source, tag.width
),

totals AS (
    SELECT
        held.run_id, held.tag, held.checkpoint,
        'the partitions hold ' || held.numel || ' elements, the parameters make '
        || CASE WHEN held.zero_stage = 3 THEN models.shared ELSE models.numel END AS problem
    FROM held
    INNER JOIN models ON held.run_id = models.run_id AND held.checkpoint = models.checkpoint AND held.mp = models.mp
    WHERE
        held.files = models.width AND held.narrowest = models.width
        AND NOT CASE
            WHEN held.zero_stage = 3 THEN held.numel = models.shared
            ELSE held.numel - models.numel IN (0, held.padding, held.aligned, coalesce(held.padding, 0) + held.aligned)
        END
),

settings AS (
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

SELECT tag, shard_rank, "group", source, NULL AS "offset", source || ', group ' || "group" || ': ' || problem AS text
FROM local
WHERE problem IS NOT NULL
UNION ALL
SELECT tag, NULL, NULL, checkpoint, NULL, checkpoint || ': ' || problem
FROM totals
UNION ALL
SELECT
    tag, rank, "group", source, padding_offset,
    source || ', group ' || "group" || ': ' || padding_filled || ' of ' || padding || ' elements of padding in ' || path || ' are not zero'
    || CASE WHEN zero_stage = 3 AND kind = 'fp32' THEN ', as they are in the checkpoints before and after' ELSE '' END
FROM padded
WHERE
    padding_filled > 0 AND NOT compressed
    AND CASE
        WHEN coalesce(zero_stage, 1) < 3 THEN TRUE
        WHEN kind = 'fp32' THEN cleared_before AND cleared_after
        ELSE coalesce(cleared, FALSE) OR NOT decays
    END
ORDER BY source, "group", text
