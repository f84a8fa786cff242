/*---
title = "Files beside the grid of data-parallel ranks that a checkpoint should hold and does not"
doc   = "Files that an index or .metadata names and that are not there, or are shorter than it says (short). And layer files of pipelines, expert files, parameters of universal checkpoints and Megatron's model-parallel files: no index lists them, so each is wanted on evidence only, stated in why: its siblings in the same checkpoint, parameters that the other files speak of (a layer's number leads their names, runtime/pipe/module.py of deepspeedai/DeepSpeed), num_experts, the sizes in Megatron's args, or every other checkpoint of the folder that was written by as many ranks. Numbers of layers may have gaps, because layers without a state have no file; numbers of experts may not (_save_moe_checkpoint in runtime/engine.py)."
reads = ["checkpoint_shard", "checkpoint_state", "checkpoint_parameter", "source"]
materialize = true
[returns]
run_id = "VARCHAR"
checkpoint = "VARCHAR"
tag = "VARCHAR"
role = "VARCHAR"
source = "VARCHAR"
short = "BOOLEAN"
why = "VARCHAR"
[[case]]
name = "an index names a file that is not there"
given.source = """
source
hf/model.safetensors.index.json
hf/model-00001-of-00002.safetensors
"""
given.checkpoint_parameter = """
source                          | kind | name | file
hf/model.safetensors.index.json | file | a    | model-00001-of-00002.safetensors
hf/model.safetensors.index.json | file | b    | model-00002-of-00002.safetensors
"""
expect = """
tag | role    | source                              | short | why
hf  | weights | hf/model-00002-of-00002.safetensors | false | hf/model.safetensors.index.json names it
"""
[[case]]
name = "a file of a distributed checkpoint is shorter than its metadata says; another has no metadata"
given.source = """
source          | bytes
d/__0_0.distcp  | 100
d/__1_0.distcp  | 100
"""
given.checkpoint_shard = """
source          | checkpoint | root | tag | role | file
e/__0_0.distcp  | e          | .    | e   | dcp  | __0_0.distcp
"""
given.checkpoint_parameter = """
source      | kind  | name | file         | offset | bytes
d/.metadata | chunk | a    | __0_0.distcp | 0      | 100
d/.metadata | chunk | b    | __1_0.distcp | 60     | 50
"""
expect = """
tag | role | source         | short | why
d   | dcp  | d/__1_0.distcp | true  | d/.metadata needs 110 bytes of it, it has 100
e   | dcp  | e/.metadata    | false | without it no one can tell what the data files hold; it is written last
"""
[[case]]
name = "a layer of one model rank, and a layer that the parameters speak of; layer 1 has no state and no file"
given.checkpoint_shard = """
source | checkpoint | root | tag | role  | mp | file
a      | c/t        | c    | t   | layer | 0  | layer_00-model_00-model_states.pt
b      | c/t        | c    | t   | layer | 1  | layer_00-model_01-model_states.pt
d      | c/t        | c    | t   | layer | 0  | layer_02-model_00-model_states.pt
e      | c/t        | c    | t   | model | 0  | mp_rank_00_model_states.pt
"""
given.checkpoint_parameter = """
source | kind  | name
e      | shape | 0.dense.weight
e      | shape | 103.norm.weight
e      | shape | tied_modules.embed.weight
"""
expect = """
role  | source                                 | why
layer | c/t/layer_02-model_01-model_states.pt  | other model-parallel ranks have this layer
layer | c/t/layer_103-model_00-model_states.pt | other files of the checkpoint speak of the parameters of layer 103
layer | c/t/layer_103-model_01-model_states.pt | other files of the checkpoint speak of the parameters of layer 103
"""
[[case]]
name = "experts: a gap, the last of a known number, a rank's optimizer"
given.checkpoint_shard = """
source | checkpoint | root | tag | role             | mp | file
a      | c/t        | c    | t   | expert           | 0  | layer_0_expert_0_mp_rank_00_model_states.pt
b      | c/t        | c    | t   | expert           | 0  | layer_0_expert_2_mp_rank_00_model_states.pt
d      | c/t        | c    | t   | expert_optimizer | 0  | expp_rank_1_mp_rank_00_optim_states.pt
m      | c/t        | c    | t   | model            | 0  | mp_rank_00_model_states.pt
"""
given.checkpoint_state = """
source | key         | value
m      | num_experts | [4]
"""
expect = """
role             | source                                          | why
expert_optimizer | c/t/expp_rank_0_mp_rank_00_optim_states.pt      | ranks of experts are numbered from 0, and there is a rank 1
expert           | c/t/layer_0_expert_1_mp_rank_00_model_states.pt | num_experts is 4
expert           | c/t/layer_0_expert_3_mp_rank_00_model_states.pt | num_experts is 4
"""
[[case]]
name = "a universal checkpoint whose model files were copied has the optimizer's state; one without them was not finished"
given.checkpoint_shard = """
source                      | checkpoint | root | tag | role      | status   | file
u/zero/w/fp32.pt            | u          | .    | u   | universal | complete | fp32.pt
u/mp_rank_00_model_states.pt | u         | .    | u   | model     | complete | mp_rank_00_model_states.pt
v/zero/w/fp32.pt            | v          | .    | v   | universal | complete | fp32.pt
"""
expect = """
role      | source                    | why
universal | u/zero/optimizer_state.pt | it is written before the copies of the model files, and these are there
"""
[[case]]
name = "a moment of a universal checkpoint; a Megatron file of a grid that args state"
given.checkpoint_shard = """
source                             | checkpoint | root | tag | role      | mp | file
u/zero/w/fp32.pt                   | u          | .    | u   | universal |    | fp32.pt
u/zero/w/exp_avg.pt                | u          | .    | u   | universal |    | exp_avg.pt
u/zero/b/fp32.pt                   | u          | .    | u   | universal |    | fp32.pt
u/zero/b/exp_avg.pt                | u          | .    | u   | universal |    | exp_avg.pt
u/zero/v/fp32.pt                   | u          | .    | u   | universal |    | fp32.pt
i/mp_rank_00_000/model_optim_rng.pt | i         | .    | i   | model     | 0  | model_optim_rng.pt
"""
given.checkpoint_state = """
source                              | key                               | value
i/mp_rank_00_000/model_optim_rng.pt | args.tensor_model_parallel_size   | 1
i/mp_rank_00_000/model_optim_rng.pt | args.pipeline_model_parallel_size | 2
"""
expect = """
role      | source                              | why
model     | i/mp_rank_00_001/model_optim_rng.pt | the arguments in the checkpoint state 1 x 2 model-parallel ranks
universal | u/zero/v/exp_avg.pt                 | other parameters of the checkpoint have this file
"""
[[case]]
name = "every other checkpoint has it; one by another number of ranks does not count"
given.checkpoint_shard = """
source | checkpoint | root | tag | role  | mp | dp_world_size | file
a      | c/a        | c    | a   | layer | 0  |               | layer_00-model_states.pt
b      | c/a        | c    | a   | model | 0  | 2             | mp_rank_00_model_states.pt
d      | c/b        | c    | b   | model | 0  | 2             | mp_rank_00_model_states.pt
e      | c/d        | c    | d   | model | 0  | 4             | mp_rank_00_model_states.pt
"""
expect = """
tag | role  | source                       | why
b   | layer | c/b/layer_00-model_states.pt | every other checkpoint of the folder has it
"""
---*/
WITH files AS (
    SELECT
        run_id, root, checkpoint, tag, role, file, source,
        CASE WHEN role IN ('universal', 'model') THEN regexp_extract(source, '((?:zero/)?[^/]+/[^/]+)$', 1) ELSE file END AS path,
        CASE
            WHEN role = 'layer' THEN regexp_replace(file, '^layer_\d+', '')
            WHEN role IN ('expert', 'expert_optimizer') THEN regexp_extract(file, '_mp_rank_.*$')
        END AS rest,
        TRY_CAST(nullif(regexp_extract(file, '^layer_(\d+)', 1), '') AS INTEGER) AS layer,
        TRY_CAST(nullif(regexp_extract(file, '(?:expert|expp_rank)_(\d+)_', 1), '') AS INTEGER) AS expert,
        TRY_CAST(nullif(regexp_extract(source, '/mp_rank_(\d+)(?:_\d+)?/model_optim_rng\.pt$', 1), '') AS INTEGER) AS tensor,
        TRY_CAST(nullif(regexp_extract(source, '/mp_rank_\d+_(\d+)/model_optim_rng\.pt$', 1), '') AS INTEGER) AS stage
    FROM checkpoint_shard
    WHERE role IN ('layer', 'expert', 'expert_optimizer', 'universal') OR file = 'model_optim_rng.pt'
),

stated AS (
    SELECT
        shard.run_id, shard.checkpoint,
        max(CASE WHEN state.key = 'num_experts' THEN regexp_extract_all(state.value, '\d+') END) AS experts,
        max(TRY_CAST(state.value AS INTEGER)) FILTER (WHERE state.key = 'args.tensor_model_parallel_size') AS tensors,
        max(TRY_CAST(state.value AS INTEGER)) FILTER (WHERE state.key = 'args.pipeline_model_parallel_size') AS stages
    FROM checkpoint_shard AS shard
    INNER JOIN checkpoint_state AS state ON shard.run_id = state.run_id AND shard.source = state.source
    WHERE state.key IN ('num_experts', 'args.tensor_model_parallel_size', 'args.pipeline_model_parallel_size')
    GROUP BY shard.run_id, shard.checkpoint
),

rests AS (
    SELECT DISTINCT run_id, checkpoint, role, rest FROM files WHERE rest IS NOT NULL
),

layers AS (
    SELECT DISTINCT run_id, checkpoint, layer, 'other model-parallel ranks have this layer' AS why
    FROM files
    WHERE role = 'layer'
    UNION ALL
    SELECT DISTINCT
        shard.run_id, shard.checkpoint, TRY_CAST(regexp_extract(p.name, '^(\d{1,6})\.', 1) AS INTEGER) AS layer,
        'other files of the checkpoint speak of the parameters of layer ' || regexp_extract(p.name, '^(\d{1,6})\.', 1)
    FROM checkpoint_parameter AS p
    INNER JOIN checkpoint_shard AS shard ON p.run_id = shard.run_id AND p.source = shard.source
    WHERE p.kind IN ('shape', 'slice') AND regexp_matches(p.name, '^\d{1,6}\.')
),

-- layer is null in the names of the first version; ids of experts begin at 0 in every layer.
experts AS (
    SELECT
        files.run_id, files.checkpoint, files.layer IS NULL AS old, max(files.layer) AS last_layer, max(files.expert) AS last_expert,
        any_value(stated.experts) AS experts
    FROM files
    LEFT JOIN stated ON files.run_id = stated.run_id AND files.checkpoint = stated.checkpoint
    WHERE files.role = 'expert'
    GROUP BY files.run_id, files.checkpoint, files.layer IS NULL
),

expert_layers AS (
    SELECT
        run_id, checkpoint, old, l.i AS layer, last_expert,
        -- num_experts is one number, or one per layer.
        TRY_CAST(CASE WHEN len(experts) > l.i AND len(experts) > 1 THEN experts[l.i + 1] ELSE list_max(experts) END AS INTEGER) AS number,
        len(experts) > 1 AS per_layer
    FROM experts
    CROSS JOIN LATERAL (SELECT unnest(range(least(greatest(
        coalesce(last_layer + 1, 1), CASE WHEN NOT old AND len(experts) > 1 THEN len(experts) ELSE 1 END
    ), 10000))) AS i) AS l
),

numbered AS (
    SELECT
        run_id, checkpoint, old, layer, e.i AS expert,
        CASE
            WHEN number > e.i THEN 'num_experts is ' || number
            ELSE 'experts are numbered from 0, and there is an expert ' || last
        END AS why
    FROM (
        SELECT
            x.*,
            coalesce(
                (
                    SELECT max(f.expert) FROM files AS f
                    WHERE
                        f.run_id = x.run_id AND f.checkpoint = x.checkpoint AND f.role = 'expert'
                        AND (x.old OR f.layer = x.layer)
                ), CASE WHEN x.number IS NULL THEN x.last_expert END
            ) AS last
        FROM expert_layers AS x
    )
    CROSS JOIN LATERAL (SELECT unnest(range(least(greatest(coalesce(number, 0), coalesce(last + 1, 0)), 10000))) AS i) AS e
),

grids AS (
    SELECT
        files.run_id, files.checkpoint, max(files.stage) IS NULL AND coalesce(any_value(stated.stages), 1) = 1 AS flat,
        greatest(max(files.tensor) + 1, coalesce(any_value(stated.tensors), 1)) AS tensors,
        greatest(coalesce(max(files.stage), 0) + 1, coalesce(any_value(stated.stages), 1)) AS stages,
        coalesce(any_value(stated.tensors), 0) AS said
    FROM files
    LEFT JOIN stated ON files.run_id = stated.run_id AND files.checkpoint = stated.checkpoint
    WHERE files.tensor IS NOT NULL
    GROUP BY files.run_id, files.checkpoint
),

parameters AS (
    SELECT DISTINCT
        run_id, checkpoint, regexp_extract(path, '^(zero/[^/]+)', 1) AS folder,
        'other parameters of the checkpoint have this file' AS why
    FROM files
    WHERE role = 'universal' AND file <> 'optimizer_state.pt'
    UNION ALL
    SELECT DISTINCT shard.run_id, shard.checkpoint, 'zero/' || p.name, 'the model files speak of this parameter'
    FROM checkpoint_parameter AS p
    INNER JOIN checkpoint_shard AS shard ON p.run_id = shard.run_id AND p.source = shard.source
    WHERE p.kind = 'shape' AND NOT contains(p.name, '/')
),

kinds AS (
    SELECT run_id, checkpoint, file
    FROM files
    WHERE role = 'universal' AND file <> 'optimizer_state.pt'
    GROUP BY run_id, checkpoint, file
    QUALIFY 2 * count(*) > max(count(*)) OVER (PARTITION BY run_id, checkpoint)
),

shapes AS (
    SELECT
        run_id, root, checkpoint, any_value(tag) AS tag, bool_or(role = 'universal') AS universal,
        max(dp_world_size) AS width, max(mp_world_size) AS parallel, max(zero_stage) AS zero_stage
    FROM checkpoint_shard
    WHERE role <> 'tag'
    GROUP BY run_id, root, checkpoint
    HAVING bool_or(role IN ('optimizer', 'model', 'model_shard', 'universal'))
),

-- Checkpoints of one folder, two by two, written by as many ranks in the same way.
peers AS (
    SELECT a.run_id, a.checkpoint, b.checkpoint AS other, count(*) OVER (PARTITION BY a.run_id, a.checkpoint) AS others
    FROM shapes AS a
    INNER JOIN shapes AS b
        ON
            a.run_id = b.run_id AND a.root = b.root AND a.checkpoint <> b.checkpoint AND a.universal = b.universal
            AND a.width IS NOT DISTINCT FROM b.width AND a.parallel IS NOT DISTINCT FROM b.parallel
            AND a.zero_stage IS NOT DISTINCT FROM b.zero_stage
),

wanted AS (
    SELECT
        layers.run_id, layers.checkpoint, 'layer' AS role, 'layer_' || printf('%02d', layers.layer) || rests.rest AS path, layers.why,
        1 AS preference
    FROM layers
    INNER JOIN rests ON layers.run_id = rests.run_id AND layers.checkpoint = rests.checkpoint AND rests.role = 'layer'
    UNION ALL
    SELECT
        numbered.run_id, numbered.checkpoint, 'expert',
        CASE WHEN numbered.old THEN '' ELSE 'layer_' || numbered.layer || '_' END || 'expert_' || numbered.expert || rests.rest,
        numbered.why, 1
    FROM numbered
    INNER JOIN rests ON numbered.run_id = rests.run_id AND numbered.checkpoint = rests.checkpoint AND rests.role = 'expert'
    UNION ALL
    SELECT
        f.run_id, f.checkpoint, 'expert_optimizer', 'expp_rank_' || e.i || rests.rest,
        'ranks of experts are numbered from 0, and there is a rank ' || f.last, 1
    FROM (SELECT run_id, checkpoint, max(expert) AS last FROM files WHERE role = 'expert_optimizer' GROUP BY run_id, checkpoint) AS f
    CROSS JOIN LATERAL (SELECT unnest(range(least(f.last + 1, 10000))) AS i) AS e
    INNER JOIN rests ON f.run_id = rests.run_id AND f.checkpoint = rests.checkpoint AND rests.role = 'expert_optimizer'
    UNION ALL
    SELECT parameters.run_id, parameters.checkpoint, 'universal', parameters.folder || '/' || kinds.file, parameters.why, 1
    FROM parameters
    INNER JOIN kinds ON parameters.run_id = kinds.run_id AND parameters.checkpoint = kinds.checkpoint
    UNION ALL
    -- checkpoint/ds_to_universal.py: the parameters first, then this file, then copies of the model files.
    SELECT
        run_id, checkpoint, 'universal', 'zero/optimizer_state.pt',
        'it is written before the copies of the model files, and these are there', 1
    FROM checkpoint_shard
    GROUP BY run_id, checkpoint
    HAVING bool_or(role = 'universal' AND file <> 'optimizer_state.pt') AND bool_or(role IN ('model', 'model_shard'))
    UNION ALL
    SELECT
        grids.run_id, grids.checkpoint, 'model',
        'mp_rank_' || printf('%02d', t.i) || CASE WHEN grids.flat THEN '' ELSE '_' || printf('%03d', s.i) END || '/model_optim_rng.pt',
        CASE
            WHEN grids.said > 0 THEN 'the arguments in the checkpoint state ' || grids.tensors || ' x ' || grids.stages || ' model-parallel ranks'
            ELSE 'other model-parallel ranks of its row and column have one'
        END, 1
    FROM grids
    CROSS JOIN LATERAL (SELECT unnest(range(least(grids.tensors, 1000))) AS i) AS t
    CROSS JOIN LATERAL (SELECT unnest(range(least(grids.stages, 1000))) AS i) AS s
    UNION ALL
    SELECT peers.run_id, peers.checkpoint, any_value(files.role), files.path, 'every other checkpoint of the folder has it', 2
    FROM peers
    INNER JOIN files ON peers.run_id = files.run_id AND peers.other = files.checkpoint
    GROUP BY peers.run_id, peers.checkpoint, files.path
    HAVING count(*) = max(peers.others)
),

-- What an index names: in its folder, and how many bytes of it.
named AS (
    SELECT
        p.run_id, p.source AS named_by, p.kind,
        coalesce(nullif(regexp_extract(p.source, '^(.*)/[^/]*$', 1), ''), '.') AS folder,
        coalesce(nullif(regexp_extract(p.source, '^(.*/)[^/]*$', 1), ''), '') || p.file AS path,
        max(p."offset" + p.bytes) AS bytes
    FROM checkpoint_parameter AS p
    WHERE p.kind IN ('file', 'chunk') AND p.file IS NOT NULL
    GROUP BY ALL
),

indexed AS (
    SELECT
        named.run_id, named.folder AS checkpoint, regexp_replace(named.folder, '^.*/', '') AS tag,
        CASE named.kind WHEN 'chunk' THEN 'dcp' ELSE 'weights' END AS role,
        named.path AS source, source.source IS NOT NULL AS short,
        min(CASE
            WHEN source.source IS NULL THEN named.named_by || ' names it'
            ELSE named.named_by || ' needs ' || named.bytes || ' bytes of it, it has ' || source.bytes
        END) AS why
    FROM named
    LEFT JOIN source ON named.run_id = source.run_id AND named.path = source.source
    WHERE source.source IS NULL OR (named.kind = 'chunk' AND named.bytes > source.bytes)
    GROUP BY named.run_id, named.folder, named.kind, named.path, source.source
    UNION ALL
    SELECT
        run_id, checkpoint, any_value(tag), 'dcp', CASE WHEN checkpoint = '.' THEN '' ELSE checkpoint || '/' END || '.metadata', FALSE,
        'without it no one can tell what the data files hold; it is written last'
    FROM checkpoint_shard
    WHERE role = 'dcp'
    GROUP BY run_id, checkpoint
    HAVING NOT bool_or(file = '.metadata')
)

SELECT run_id, checkpoint, tag, role, source, short, why
FROM indexed
UNION ALL
SELECT
    wanted.run_id, wanted.checkpoint, any_value(shapes.tag) AS tag, any_value(wanted.role) AS role,
    CASE WHEN wanted.checkpoint = '.' THEN '' ELSE wanted.checkpoint || '/' END || wanted.path AS source,
    FALSE AS short,
    arg_min(wanted.why, wanted.preference || wanted.why) AS why
FROM wanted
INNER JOIN shapes ON wanted.run_id = shapes.run_id AND wanted.checkpoint = shapes.checkpoint
ANTI JOIN files ON wanted.run_id = files.run_id AND wanted.checkpoint = files.checkpoint AND wanted.path = files.path
GROUP BY wanted.run_id, wanted.checkpoint, wanted.path
ORDER BY run_id, source
