/*---
title    = "Replicas of one tensor differ within a checkpoint"
doc      = "Buffers of stage 3's model files, and layer norms over tensor-parallel ranks of one pipeline stage, are copies of each other and have to be bit-equal. Partitioned parameters, placeholders and embeddings that are cut across ranks are not compared."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_state"]
summary  = "replicas differ in checkpoint {tag}: {text}"
[returns]
run_id = "VARCHAR"
tag = "VARCHAR"
rank = "INTEGER"
culprit = "BOOLEAN"
name = "VARCHAR"
offset = "BIGINT"
end = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "one of three copies of a buffer differs; two of two norms"
given.checkpoint_shard = """
source | checkpoint | tag | role        | dp | mp | rank | status
a      | c/t        | t   | model_shard | 0  | 0  | 0    | complete
b      | c/t        | t   | model_shard | 1  | 0  | 1    | complete
d      | c/t        | t   | model_shard | 2  | 0  | 2    | complete
e      | c/u        | u   | model       |    | 0  |      | complete
f      | c/u        | u   | model       |    | 1  |      | complete
"""
given.checkpoint_tensor = """
source | path             | kind      | name      | shape | numel | content | offset | bytes
a      | module.running   | buffer    | running   | [4]   | 4     | aa      | 64     | 16
b      | module.running   | buffer    | running   | [4]   | 4     | aa      | 64     | 16
d      | module.running   | buffer    | running   | [4]   | 4     | bb      | 64     | 16
e      | module.ln.weight | parameter | ln.weight | [4]   | 4     | cc      | 64     | 16
f      | module.ln.weight | parameter | ln.weight | [4]   | 4     | dd      | 64     | 16
e      | module.fc.weight | parameter | fc.weight | [4]   | 4     | cc      | 64     | 16
f      | module.fc.weight | parameter | fc.weight | [4]   | 4     | dd      | 64     | 16
"""
expect = """
tag | rank | culprit | name      | source | text
t   | 2    | true    | running   | d      | d: running differs from 2 of 3 copies
u   |      | false   | ln.weight | e      | e: ln.weight differs from its other copy
u   |      | false   | ln.weight | f      | f: ln.weight differs from its other copy
"""
[[case]]
name = "equal copies, stage-3 placeholders, norms of different pipeline stages"
given.checkpoint_shard = """
source | checkpoint | tag | role        | dp | mp | rank | status
a      | c/t        | t   | model_shard | 0  | 0  | 0    | complete
b      | c/t        | t   | model_shard | 1  | 0  | 1    | complete
e      | c/u        | u   | model       |    | 0  |      | complete
f      | c/u        | u   | model       |    | 1  |      | complete
"""
given.checkpoint_state = """
source | key                                      | value
e      | checkpoint_parallel_dimensions.pp_degree | 2
f      | checkpoint_parallel_dimensions.pp_degree | 2
"""
given.checkpoint_tensor = """
source | path             | kind      | name      | shape | numel | content
a      | module.running   | buffer    | running   | [4]   | 4     | aa
b      | module.running   | buffer    | running   | [4]   | 4     | aa
a      | module.ln.weight | parameter | ln.weight | [0]   | 0     | aa
b      | module.ln.weight | parameter | ln.weight | [0]   | 0     | aa
e      | module.ln.weight | parameter | ln.weight | [4]   | 4     | cc
f      | module.ln.weight | parameter | ln.weight | [4]   | 4     | dd
"""
expect = "tag | rank"
---*/
WITH staged AS (
    SELECT DISTINCT run_id, source
    FROM checkpoint_state
    WHERE key = 'checkpoint_parallel_dimensions.pp_degree' AND TRY_CAST(value AS BIGINT) > 1
),

copies AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.tag, shard.role, shard.rank, shard.mp, tensor.source, tensor.name,
        tensor."offset", tensor.bytes, tensor.content,
        CASE shard.role
            WHEN 'model_shard' THEN 'mp ' || shard.mp
            WHEN 'layer' THEN regexp_extract(shard.file, '^(layer_\d+)', 1)
            -- Megatron numbers its layers from 0 on every pipeline stage, which the folder's name states.
            ELSE 'stage ' || regexp_extract(shard.source, '/mp_rank_\d+_(\d+)/model_optim_rng\.pt$', 1)
        END AS scope
    FROM checkpoint_tensor AS tensor
    INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
    LEFT JOIN staged ON shard.run_id = staged.run_id AND shard.source = staged.source
    WHERE
        tensor.content IS NOT NULL AND tensor.numel > 0 AND shard.status = 'complete' AND staged.source IS NULL
        AND (
            (shard.role = 'model_shard' AND tensor.kind = 'buffer')
            OR (
                shard.role IN ('model', 'layer') AND tensor.kind = 'parameter' AND len(tensor.shape) = 1
                AND regexp_matches(lower(tensor.name), '(^|[._])(\w*norm\w*|ln\w*)\.(weight|bias)$')
            )
        )
),

weighed AS (
    SELECT
        copies.*,
        count(*) OVER (PARTITION BY run_id, checkpoint, role, scope, name) AS files,
        count(*) OVER (PARTITION BY run_id, checkpoint, role, scope, name, content) AS agreeing
    FROM copies
),

judged AS (
    SELECT
        weighed.*,
        bool_or(2 * agreeing > files) OVER (PARTITION BY run_id, checkpoint, role, scope, name) AS decided
    FROM weighed
)

SELECT
    run_id, tag, rank, decided AS culprit, name, "offset", "offset" + bytes AS "end", source,
    source || ': ' || name || ' differs from '
    || CASE
        WHEN decided THEN (files - agreeing) || ' of ' || files || ' copies'
        WHEN files = 2 THEN 'its other copy'
        ELSE 'others of its ' || files || ' copies, and no majority agrees'
    END AS text
FROM judged
WHERE agreeing < files AND NOT (decided AND 2 * agreeing > files)
ORDER BY tag, name, source
