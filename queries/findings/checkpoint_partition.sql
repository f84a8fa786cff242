/*---
title    = "The partitions of a checkpoint do not add up"
doc      = "Stages 1 and 2: elements plus padding are equal in all shards of a group, the moments have the length of the partition with or without its padding, pieces of parameters lie end to end, all partitions together hold all parameters. Stage 3: every sub-group is equally long on all ranks, and all together hold every parameter's share. Sources: runtime/zero/stage_1_and_2.py, stage3.py and utils/zero_to_fp32.py of deepspeedai/DeepSpeed."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_group", "checkpoint_parameter", "checkpoint_shard", "checkpoint_tag", "checkpoint_tensor"]
summary  = "partitions of checkpoint {tag} do not add up: {text}"
[returns]
run_id = "VARCHAR"
tag = "VARCHAR"
shard_rank = "INTEGER"
group = "INTEGER"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "pieces of two parameters under one name; a module that lacks a parameter; a universal checkpoint's moment"
given.checkpoint_tag = """
checkpoint | tag | width | complete | zero_stage
c/t        | t   | 1     | true     | 1
u          | u   | 0     | true     |
"""
given.checkpoint_group = """
source | checkpoint | tag | dp | mp | rank | zero_stage | group | numel | storage_numel | padding | keeps_padding | partitions | aligned | first_moment | second_moment | pieces_start | pieces_end | gaps
a      | c/t        | t   | 0  | 0  | 0    | 1          | 0     | 6     | 6             | 0       | false         | 1          | 0       | 6            | 6             | 0            | 6          | 0
"""
given.checkpoint_shard = """
source                | checkpoint | tag | role      | dp | mp | rank | status   | file
a                     | c/t        | t   | optimizer | 0  | 0  | 0    | complete |
m                     | c/t        | t   | model     |    | 0  |      | complete |
u/zero/w/fp32.pt      | u          | u   | universal |    |    |      | complete | fp32.pt
u/zero/w/exp_avg.pt   | u          | u   | universal |    |    |      | complete | exp_avg.pt
u/zero/w/exp_avg_sq.pt | u         | u   | universal |    |    |      | complete | exp_avg_sq.pt
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel | start
m      | shape | 0     | 0        | w    | 4     |
m      | shape | 0     | 1        | v    | 1     |
m      | shape | 0     | 2        | b    | 1     |
a      | slice | 0     | 0        | w    | 5     | 0
a      | slice | 0     | 1        | b    | 1     | 5
"""
given.checkpoint_tensor = """
source                 | path     | kind       | name | numel
m                      | module.w | parameter  | w    | 4
m                      | module.v | parameter  | v    | 1
u/zero/w/fp32.pt       | param    | fp32       | w    | 4
u/zero/w/exp_avg.pt    | param    | exp_avg    | w    | 4
u/zero/w/exp_avg_sq.pt | param    | exp_avg_sq | w    | 3
"""
expect = """
tag | shard_rank | source                 | text
t   | 0          | a                      | a: the pieces of w hold 5 elements, its shape makes 4
t   |            | m                      | m: the module lacks b, which param_shapes states
u   |            | u/zero/w/exp_avg_sq.pt | u/zero/w/exp_avg_sq.pt: w has 3 elements where most of its files have 4
"""
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

-- Parameter by parameter: its pieces in all shards make its shape. Experts have pieces on some of the ranks only.
pieced AS (
    SELECT
        shard.run_id, shard.checkpoint, any_value(shard.tag) AS tag, shard.mp, p.name, sum(p.numel) AS numel,
        count(DISTINCT shard.source) AS files, min(shard.source) AS source, min(shard.rank) AS rank
    FROM checkpoint_parameter AS p
    INNER JOIN checkpoint_shard AS shard ON p.run_id = shard.run_id AND p.source = shard.source
    INNER JOIN held ON shard.run_id = held.run_id AND shard.checkpoint = held.checkpoint AND shard.mp = held.mp
    INNER JOIN checkpoint_tag AS tag ON shard.run_id = tag.run_id AND shard.checkpoint = tag.checkpoint
    WHERE p.kind = 'slice' AND shard.role = 'optimizer' AND tag.complete AND held.files = tag.width AND held.narrowest = tag.width
    GROUP BY shard.run_id, shard.checkpoint, shard.mp, p.name
),

-- What the weights of a model file, and of a universal checkpoint, should hold by the shapes that are stated.
shaped AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.tag, shard.mp, shard.source, p.name, p.numel,
        bool_or(shard.parallel > 1) OVER (PARTITION BY shard.run_id, shard.checkpoint) AS cut
    FROM (
        SELECT
            checkpoint_shard.*, count(*) OVER (PARTITION BY run_id, checkpoint) AS parallel
        FROM checkpoint_shard
        WHERE role = 'model'
    ) AS shard
    INNER JOIN checkpoint_parameter AS p ON shard.run_id = p.run_id AND shard.source = p.source
    WHERE p.kind = 'shape' AND NOT contains(p.name, 'deepspeed_experts')
),

modules AS (
    SELECT
        shaped.run_id, shaped.checkpoint, shaped.tag, shaped.source, count(*) AS parameters,
        count(*) FILTER (WHERE tensor.name IS NOT NULL) AS there,
        count(*) FILTER (WHERE tensor.name IS NULL OR tensor.numel <> shaped.numel) AS wrong,
        min(CASE WHEN tensor.name IS NULL THEN shaped.name END) AS lost,
        min(CASE WHEN tensor.numel <> shaped.numel THEN shaped.name END) AS other
    FROM shaped
    INNER JOIN checkpoint_tag AS tag ON shaped.run_id = tag.run_id AND shaped.checkpoint = tag.checkpoint AND tag.zero_stage < 3
    LEFT JOIN checkpoint_tensor AS tensor
        ON
            shaped.run_id = tensor.run_id AND shaped.source = tensor.source AND tensor.path = 'module.' || shaped.name
    GROUP BY shaped.run_id, shaped.checkpoint, shaped.tag, shaped.source
),

universal AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.tag, shard.source, shard.file, tensor.name, tensor.numel,
        mode(tensor.numel) OVER parameter AS usual,
        count(*) OVER (PARTITION BY shard.run_id, shard.checkpoint, tensor.name, tensor.numel) AS agreeing,
        count(*) OVER parameter AS files
    FROM checkpoint_shard AS shard
    INNER JOIN checkpoint_tensor AS tensor ON shard.run_id = tensor.run_id AND shard.source = tensor.source
    WHERE shard.role = 'universal' AND shard.status = 'complete' AND tensor.kind IN ('fp32', 'exp_avg', 'exp_avg_sq') AND tensor.name IS NOT NULL
    WINDOW parameter AS (PARTITION BY shard.run_id, shard.checkpoint, tensor.name)
),

named AS (
    SELECT
        pieced.run_id, pieced.tag, CASE WHEN pieced.files = 1 THEN pieced.rank END AS shard_rank,
        CASE WHEN pieced.files = 1 THEN pieced.source ELSE pieced.checkpoint END AS source,
        'the pieces of ' || pieced.name || ' hold ' || pieced.numel || ' elements, its shape makes ' || shaped.numel AS problem
    FROM pieced
    INNER JOIN shaped
        ON
            pieced.run_id = shaped.run_id AND pieced.checkpoint = shaped.checkpoint AND pieced.mp = shaped.mp
            AND pieced.name = shaped.name
    WHERE pieced.numel <> shaped.numel
    UNION ALL
    SELECT
        run_id, tag, NULL, source,
        CASE
            WHEN lost IS NOT NULL THEN 'the module lacks ' || lost || ', which param_shapes states'
            ELSE other || ' is not of the shape that param_shapes states'
        END || CASE WHEN wrong > 1 THEN ' (and ' || wrong - 1 || ' more)' ELSE '' END
    FROM modules
    WHERE wrong > 0 AND 2 * wrong < parameters AND there > 0
    UNION ALL
    SELECT
        universal.run_id, universal.tag, NULL, universal.source,
        universal.name || ' has ' || universal.numel || ' elements where '
        || CASE
            WHEN universal.numel <> shaped.numel THEN 'its shape makes ' || shaped.numel
            ELSE 'most of its files have ' || universal.usual
        END
    FROM universal
    LEFT JOIN shaped
        ON
            universal.run_id = shaped.run_id AND universal.checkpoint = shaped.checkpoint AND universal.name = shaped.name
            AND NOT shaped.cut
    -- All three may differ from the shape together: a vocabulary loses its padding (checkpoint/ds_to_universal.py).
    WHERE
        universal.agreeing < universal.files
        AND CASE WHEN shaped.numel IS NULL THEN 2 * universal.agreeing < universal.files ELSE universal.numel <> shaped.numel END
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

SELECT run_id, tag, shard_rank, "group", source, source || ', group ' || "group" || ': ' || problem AS text
FROM local
WHERE problem IS NOT NULL
UNION ALL
SELECT run_id, tag, NULL, NULL, checkpoint, checkpoint || ': ' || problem
FROM totals
UNION ALL
SELECT run_id, tag, shard_rank, NULL, source, source || ': ' || problem
FROM named
ORDER BY source, "group", text
