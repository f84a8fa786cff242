/*---
title    = "Shards of one checkpoint disagree about what they must share"
doc      = "Versions, configuration, ZeRO stage, loss scaler, hyper-parameters, step counters, parameter shapes and, in stage 3, the names of the module's tensors are equal in all shards of a checkpoint (checkpoint/ds_to_universal.py and runtime/engine.py of deepspeedai/DeepSpeed). Where most shards agree, the others are named; where no majority exists, all are listed and none is blamed. Random states, shared_params, fragments and whatever the training script added may differ."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_shard", "checkpoint_state", "checkpoint_parameter", "checkpoint_tensor"]
summary  = "shards of checkpoint {tag} disagree: {text}"
[returns]
run_id = "VARCHAR"
tag = "VARCHAR"
rank = "INTEGER"
culprit = "BOOLEAN"
key = "VARCHAR"
value = "VARCHAR"
others = "VARCHAR"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "one of three shards has another learning rate; two model files of two disagree on the step"
given.checkpoint_shard = """
source | checkpoint | tag | role        | dp | mp | rank | status
a      | c/t        | t   | optimizer   | 0  | 0  | 0    | complete
b      | c/t        | t   | optimizer   | 1  | 0  | 1    | complete
d      | c/t        | t   | optimizer   | 2  | 0  | 2    | complete
e      | c/t        | t   | model_shard | 0  | 0  | 0    | complete
f      | c/t        | t   | model_shard | 1  | 0  | 1    | complete
"""
given.checkpoint_state = """
source | key                                                           | value
a      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr   | 0.1
b      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr   | 0.2
d      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr   | 0.1
e      | global_steps                                                  | 20
f      | global_steps                                                  | 10
"""
expect = """
tag | rank | culprit | key                                                         | value | others | source
t   | 1    | true    | optimizer_state_dict.base_optimizer_state.param_groups.0.lr | 0.2   | 0.1    | b
t   | 0    | false   | global_steps                                                | 20    |        | e
t   | 1    | false   | global_steps                                                | 10    |        | f
"""
[[case]]
name = "two of each tensor-parallel rank: the shards of the other one decide"
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | mp | rank | status
a      | c/t        | t   | optimizer | 0  | 0  | 0    | complete
b      | c/t        | t   | optimizer | 1  | 0  | 2    | complete
d      | c/t        | t   | optimizer | 0  | 1  | 1    | complete
e      | c/t        | t   | optimizer | 1  | 1  | 3    | complete
"""
given.checkpoint_state = """
source | key                                                         | value
a      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr | 0.1
b      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr | 0.2
d      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr | 0.1
e      | optimizer_state_dict.base_optimizer_state.param_groups.0.lr | 0.1
"""
expect = """
tag | rank | culprit | value | others | source | text
t   | 2    | true    | 0.2   | 0.1    | b      | b: optimizer_state_dict.base_optimizer_state.param_groups.0.lr is 0.2 where 3 of 4 shards have 0.1
"""
[[case]]
name = "the names of a module's tensors, the step of one parameter of a universal checkpoint, learning rates without ZeRO; stages of a pipeline may differ"
given.checkpoint_shard = """
source                             | checkpoint | tag | role        | dp | mp | rank | status   | file
a                                  | c/t        | t   | model_shard | 0  | 0  | 0    | complete |
b                                  | c/t        | t   | model_shard | 1  | 0  | 1    | complete |
d                                  | c/t        | t   | model_shard | 2  | 0  | 2    | complete |
u/zero/w/step.pt                   | u          | u   | universal   |    |    |      | complete | step.pt
u/zero/v/step.pt                   | u          | u   | universal   |    |    |      | complete | step.pt
u/zero/b/step.pt                   | u          | u   | universal   |    |    |      | complete | step.pt
i/mp_rank_00_000/model_optim_rng.pt | i         | i   | model       |    | 0  |      | complete | model_optim_rng.pt
i/mp_rank_01_000/model_optim_rng.pt | i         | i   | model       |    | 1  |      | complete | model_optim_rng.pt
i/mp_rank_00_001/model_optim_rng.pt | i         | i   | model       |    | 0  |      | complete | model_optim_rng.pt
"""
given.checkpoint_tensor = """
source | path
a      | module.w
a      | module.b
b      | module.w
b      | module.b
d      | module.w
"""
given.checkpoint_state = """
source                              | key                                   | value
u/zero/w/step.pt                    |                                       | 5
i/mp_rank_00_000/model_optim_rng.pt | optimizer.optimizer.param_groups.0.lr | 0.1
i/mp_rank_01_000/model_optim_rng.pt | optimizer.optimizer.param_groups.0.lr | 0.2
i/mp_rank_00_001/model_optim_rng.pt | optimizer.optimizer.param_groups.0.lr | 0.3
"""
expect = """
tag | culprit | key                                   | source
i   | false   | optimizer.optimizer.param_groups.0.lr | i/mp_rank_00_000/model_optim_rng.pt
i   | false   | optimizer.optimizer.param_groups.0.lr | i/mp_rank_01_000/model_optim_rng.pt
t   | true    | module                                | d
"""
[[case]]
name = "what may differ: paddings, shared parameters, random states, the script's own state"
given.checkpoint_shard = """
source | checkpoint | tag | role        | dp | mp | rank | status
a      | c/t        | t   | optimizer   | 0  | 0  | 0    | complete
b      | c/t        | t   | optimizer   | 1  | 0  | 1    | complete
e      | c/t        | t   | model_shard | 0  | 0  | 0    | complete
f      | c/t        | t   | model_shard | 1  | 0  | 1    | complete
"""
given.checkpoint_state = """
source | key                                  | value
a      | optimizer_state_dict.group_paddings  | [0]
b      | optimizer_state_dict.group_paddings  | [2]
a      | optimizer_state_dict.zero_stage      | 1
b      | optimizer_state_dict.zero_stage      | 1
e      | shared_params.a                      | "b"
e      | args.rank                            | 0
f      | args.rank                            | 1
"""
expect = "tag | rank | key"
---*/
WITH shards AS (
    SELECT
        run_id, source, checkpoint, tag, role, rank,
        -- Plain model files exist once per model-parallel rank and share their counters. Megatron's, which a folder
        -- per pipeline stage tells apart, share those of their stage only.
        CASE
            WHEN role = 'model' THEN 'stage ' || regexp_extract(source, '/mp_rank_\d+_(\d+)/model_optim_rng\.pt$', 1)
            WHEN role = 'universal' THEN 'all'
            ELSE 'mp ' || coalesce(mp, -1)
        END AS part
    FROM checkpoint_shard
    WHERE
        (role IN ('optimizer', 'model', 'model_shard') OR (role = 'universal' AND file = 'step.pt'))
        AND status = 'complete'
),

-- Layers of a pipeline are optimized on different ranks, in groups of their own.
layered AS (
    SELECT DISTINCT run_id, checkpoint FROM checkpoint_shard WHERE role = 'layer'
),

said AS (
    SELECT run_id, source, key, value
    FROM checkpoint_state
    UNION ALL
    SELECT
        run_id, source, 'param_shapes',
        count(*) || ' parameters, ' || sum(numel) || ' elements, '
        || hash(string_agg(concat_ws(' ', "group", name, shape), ',' ORDER BY "group", "position"))
    FROM checkpoint_parameter
    WHERE kind = 'shape'
    GROUP BY run_id, source
    UNION ALL
    SELECT run_id, source, 'module', count(*) || ' tensors, ' || hash(string_agg(path, ',' ORDER BY path))
    FROM checkpoint_tensor
    WHERE starts_with(path, 'module.')
    GROUP BY run_id, source
),

shared AS (
    SELECT shards.*, said.key, said.value
    FROM shards
    INNER JOIN said ON shards.run_id = said.run_id AND shards.source = said.source
    LEFT JOIN layered ON shards.run_id = layered.run_id AND shards.checkpoint = layered.checkpoint
    WHERE
        (
            shards.role = 'optimizer'
            AND (starts_with(said.key, 'optimizer_state_dict.') OR starts_with(said.key, 'ds_config.') OR said.key = 'ds_version')
            AND NOT regexp_matches(
                said.key, '^optimizer_state_dict\.(group_paddings|param_alignment_paddings|param_slice_mappings|ds_zero_partition_groups)'
            )
        )
        OR (
            shards.role IN ('model', 'model_shard')
            AND said.key IN (
                'global_steps', 'skipped_steps', 'global_samples', 'dp_world_size', 'mp_world_size', 'ds_version', 'num_experts'
            )
        )
        OR (
            shards.role = 'model_shard'
            AND (said.key IN ('param_shapes', 'buffer_names', 'module') OR regexp_matches(said.key, '^(lr_scheduler|ds_config)\.'))
        )
        -- The optimizer without ZeRO, and Megatron's, are in the model files.
        OR (
            shards.role = 'model' AND layered.checkpoint IS NULL
            AND regexp_matches(
                said.key,
                '^optimizer\.(cur_scale|cur_iter|last_overflow_iter|scale_factor|scale_window|clip_grad)$'
                || '|^optimizer\.(.*\.)?param_groups\.\d+\.(lr|betas|eps|step)$'
            )
        )
        OR (shards.role = 'universal' AND said.key = '')
),

sizes AS (
    SELECT run_id, checkpoint, role, part, count(*) AS files
    FROM shards
    GROUP BY run_id, checkpoint, role, part
),

keys AS (
    SELECT run_id, checkpoint, role, part, key, count(*) AS holders
    FROM shared
    GROUP BY run_id, checkpoint, role, part, key
    HAVING
        count(DISTINCT value) > 1
        OR count(*) < (
            SELECT max(sizes.files) FROM sizes
            WHERE
                sizes.run_id = shared.run_id AND sizes.checkpoint = shared.checkpoint
                AND sizes.role = shared.role AND sizes.part = shared.part
        )
),

spread AS (
    SELECT
        shards.run_id, shards.source, shards.checkpoint, shards.tag, shards.role, shards.part, shards.rank, keys.key,
        coalesce(shared.value, '(absent)') AS value
    FROM keys
    INNER JOIN shards
        ON
            keys.run_id = shards.run_id AND keys.checkpoint = shards.checkpoint AND keys.role = shards.role
            AND keys.part = shards.part
    LEFT JOIN shared ON shards.run_id = shared.run_id AND shards.source = shared.source AND keys.key = shared.key
),

weighed AS (
    SELECT
        spread.*,
        count(*) OVER (PARTITION BY run_id, checkpoint, role, part, key) AS files,
        count(*) OVER (PARTITION BY run_id, checkpoint, role, part, key, value) AS agreeing
    FROM spread
),

-- Two shards of one model-parallel rank cannot outvote each other; those of the other ranks were written with the
-- same settings (but have parameter shapes of their own), and can.
everywhere AS (
    SELECT run_id, checkpoint, role, key, value, count(*) AS agreeing, sum(count(*)) OVER (PARTITION BY run_id, checkpoint, role, key) AS files
    FROM shared
    WHERE role <> 'model' AND key NOT IN ('param_shapes', 'buffer_names', 'module')
    GROUP BY run_id, checkpoint, role, key, value
),

elected AS (
    SELECT
        weighed.run_id, weighed.source, weighed.tag, weighed.rank, weighed.key, weighed.value,
        weighed.checkpoint, weighed.role, weighed.part,
        coalesce(
            max(CASE WHEN 2 * weighed.agreeing > weighed.files THEN weighed.value END) OVER part,
            max(CASE WHEN 2 * e.agreeing > e.files THEN weighed.value END) OVER part
        ) AS others,
        CASE WHEN bool_or(2 * weighed.agreeing > weighed.files) OVER part THEN weighed.files ELSE e.files END AS files,
        CASE WHEN bool_or(2 * weighed.agreeing > weighed.files) OVER part THEN weighed.agreeing ELSE e.agreeing END AS agreeing
    FROM weighed
    LEFT JOIN everywhere AS e
        ON
            weighed.run_id = e.run_id AND weighed.checkpoint = e.checkpoint AND weighed.role = e.role AND weighed.key = e.key
            AND weighed.value = e.value
    WINDOW part AS (PARTITION BY weighed.run_id, weighed.checkpoint, weighed.role, weighed.part, weighed.key)
),

counted AS (
    SELECT
        elected.*,
        max(CASE WHEN value = others THEN agreeing END) OVER (PARTITION BY run_id, checkpoint, role, part, key) AS holders
    FROM elected
)

SELECT
    run_id, tag, rank, others IS NOT NULL AS culprit, key, value, others, source,
    source || ': ' || CASE key WHEN '' THEN 'the step' WHEN 'module' THEN 'the module' ELSE key END || ' is ' || left(value, 80)
    || coalesce(' where ' || holders || ' of ' || coalesce(files, holders + 1) || ' shards have ' || left(others, 80), ', and no majority agrees on another')
        AS text
FROM counted
WHERE others IS NULL OR value <> others
ORDER BY tag, others IS NULL, key, source
