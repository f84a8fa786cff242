/*---
title    = "Shards of one checkpoint disagree about what they must share"
doc      = "Versions, configuration, ZeRO stage, loss scaler, hyper-parameters, step counters and parameter shapes are equal in all shards of a checkpoint (checkpoint/ds_to_universal.py and runtime/engine.py of deepspeedai/DeepSpeed). Where most shards agree, the others are named; where no majority exists, all are listed and none is blamed. Random states, shared_params, fragments and whatever the training script added may differ."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_shard", "checkpoint_state", "checkpoint_parameter"]
summary  = "shards of checkpoint {tag} disagree: {text}"
[returns]
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
        -- Plain model files exist once per model-parallel rank and share their counters.
        CASE WHEN role = 'model' THEN -1 ELSE coalesce(mp, -1) END AS part
    FROM checkpoint_shard
    WHERE role IN ('optimizer', 'model', 'model_shard') AND status = 'complete'
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
),

shared AS (
    SELECT shards.*, said.key, said.value
    FROM shards
    INNER JOIN said ON shards.run_id = said.run_id AND shards.source = said.source
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
            AND (said.key IN ('param_shapes', 'buffer_names') OR regexp_matches(said.key, '^(lr_scheduler|ds_config)\.'))
        )
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
    WHERE role <> 'model' AND key NOT IN ('param_shapes', 'buffer_names')
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
    tag, rank, others IS NOT NULL AS culprit, key, value, others, source,
    source || ': ' || key || ' is ' || left(value, 80)
    || coalesce(' where ' || holders || ' of ' || coalesce(files, holders + 1) || ' shards have ' || left(others, 80), ', and no majority agrees on another')
        AS text
FROM counted
WHERE others IS NULL OR value <> others
ORDER BY tag, others IS NULL, key, source
