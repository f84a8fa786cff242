/*---
title    = "The partitions of a checkpoint do not add up"
doc      = "Stages 1 and 2: elements plus padding are equal in all shards of a group, the moments have the length of the partition with or without its padding, pieces of parameters lie end to end, all partitions together hold all parameters. Stage 3: every sub-group is equally long on all ranks, and all together hold every parameter's share. Sources: runtime/zero/stage_1_and_2.py, stage3.py and utils/zero_to_fp32.py of deepspeedai/DeepSpeed."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_group", "checkpoint_parameter", "checkpoint_shard", "checkpoint_tag"]
summary  = "partitions of checkpoint {tag} do not add up: {text}"
[returns]
tag = "VARCHAR"
shard_rank = "INTEGER"
group = "INTEGER"
source = "VARCHAR"
text = "VARCHAR"
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
)

SELECT tag, shard_rank, "group", source, source || ', group ' || "group" || ': ' || problem AS text
FROM local
WHERE problem IS NOT NULL
UNION ALL
SELECT tag, NULL, NULL, checkpoint, checkpoint || ': ' || problem
FROM totals
ORDER BY source, "group", text
