/*---
title = "Every file of every checkpoint, by what its name says it is"
doc   = "Role, indices, tag and global rank from the file's path (runtime/engine.py and pipe/module.py of deepspeedai/DeepSpeed), state and step counters from its content. A file that nothing could be read from is here too: its state is empty, unreadable or unknown. rank is null where the layout leaves more than one answer."
reads = ["source", "checkpoint_file", "checkpoint_state"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
checkpoint = "VARCHAR"
root = "VARCHAR"
tag = "VARCHAR"
tag_step = "BIGINT"
role = "VARCHAR"
dp = "INTEGER"
mp = "INTEGER"
rank = "INTEGER"
file = "VARCHAR"
status = "VARCHAR"
content = "VARCHAR"
checked = "VARCHAR"
defect = "VARCHAR"
offset = "BIGINT"
end = "BIGINT"
bytes = "BIGINT"
storage_bytes = "BIGINT"
modified = "BIGINT"
stem = "VARCHAR"
global_steps = "BIGINT"
skipped_steps = "BIGINT"
optimizer_step = "BIGINT"
dp_world_size = "BIGINT"
mp_world_size = "BIGINT"
partition_count = "BIGINT"
zero_stage = "BIGINT"
[[case]]
name = "roles and indices of old and new names; one optimizer shard is empty"
given.source = """
source                                                             | status  | format           | bytes
ckpt/global_step20/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt  | read    | torch_checkpoint | 5
ckpt/global_step20/zero_pp_rank_0_mp_rank_00optim_states.pt        | empty   | empty            | 0
ckpt/global_step20/zero_pp_rank_0_mp_rank_00_model_states.pt       | read    | torch_checkpoint | 5
ckpt/global_step20/mp_rank_00_model_states.pt                      | read    | torch_checkpoint | 5
ckpt/global_step20/layer_03-model_00-model_states.pt               | read    | torch_checkpoint | 5
ckpt/global_step20/layer_2_expert_5_mp_rank_00_model_states.pt     | read    | torch_checkpoint | 5
ckpt/latest                                                        | read    | checkpoint_tag   | 5
train.log                                                          | read    | lines            | 5
"""
given.checkpoint_file = """
source                                                            | status   | content   | bytes | container
ckpt/global_step20/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt | complete | optimizer | 5     | zip
"""
given.checkpoint_state = """
source                                                            | key                                                           | value
ckpt/global_step20/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt | optimizer_state_dict.partition_count                          | [2, 2]
ckpt/global_step20/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt | optimizer_state_dict.base_optimizer_state.state.0.step        | 20
"""
expect = """
tag           | tag_step | role        | dp | mp | rank | status   | partition_count | optimizer_step
ckpt          |          | tag         |    |    |      | unknown  |                 |
global_step20 | 20       | optimizer   | 1  | 0  | 1    | complete | 2               | 20
global_step20 | 20       | layer       |    | 0  |      | unknown  |                 |
global_step20 | 20       | expert      |    | 0  |      | unknown  |                 |
global_step20 | 20       | model       |    | 0  |      | unknown  |                 |
global_step20 | 20       | model_shard | 0  | 0  | 0    | unknown  |                 |
global_step20 | 20       | optimizer   | 0  | 0  | 0    | empty    |                 |
"""
[[case]]
name = "with tensor parallelism the rank follows from both indices"
given.source = """
source                                                      | status | format           | bytes
c/global_step1/zero_pp_rank_1_mp_rank_01_optim_states.pt    | read   | torch_checkpoint | 5
c/global_step1/mp_rank_01_model_states.pt                   | read   | torch_checkpoint | 5
"""
given.checkpoint_state = """
source                                    | key                                      | value
c/global_step1/mp_rank_01_model_states.pt | mp_world_size                            | 2
c/global_step1/mp_rank_01_model_states.pt | checkpoint_parallel_dimensions.pp_degree | 1
"""
expect = """
role      | dp | mp | rank
model     |    | 1  |
optimizer | 1  | 1  | 3
"""
---*/
WITH named AS (
    SELECT
        run_id, source, status AS read_status, format, bytes,
        regexp_replace(source, '^.*/', '') AS file,
        coalesce(nullif(regexp_extract(source, '^(.*)/[^/]*$', 1), ''), '.') AS folder
    FROM source
),

roles AS (
    SELECT
        named.*,
        CASE
            WHEN regexp_matches(file, '^(latest|latest_universal|latest_checkpointed_iteration\.txt)$') THEN 'tag'
            WHEN regexp_matches(file, 'zero_pp_rank_\d+_mp_rank_\d+(_\d+)?_?optim_states\.pt$') THEN 'optimizer'
            WHEN regexp_matches(file, '^expp_rank_\d+_mp_rank_\d+_optim_states\.pt$') THEN 'expert_optimizer'
            WHEN regexp_matches(file, 'zero_pp_rank_\d+_mp_rank_\d+(_\d+)?_model_states\.pt$') THEN 'model_shard'
            WHEN regexp_matches(file, '^(layer_\d+_)?expert_\d+_mp_rank_\d+_model_states\.pt$') THEN 'expert'
            WHEN regexp_matches(file, '^layer_\d+.*model_states\.pt$') THEN 'layer'
            WHEN regexp_matches(file, '^mp_rank_\d+(_\d+)?_model_states\.pt$|^model_optim_rng\.pt$') THEN 'model'
            WHEN regexp_matches(source, '/zero/([^/]+/(fp32|exp_avg|exp_avg_sq|step)|optimizer_state)\.pt$') THEN 'universal'
            WHEN regexp_matches(file, '\.safetensors$|^pytorch_model.*\.bin$|\.index\.json$') THEN 'weights'
            WHEN regexp_matches(file, '\.distcp$') OR (file = '.metadata' AND format IN ('dcp', 'empty')) THEN 'dcp'
            ELSE 'other'
        END AS role
    FROM named
),

placed AS (
    SELECT
        roles.*,
        CASE
            WHEN role = 'universal' THEN regexp_replace(folder, '/zero(/[^/]+)?$', '')
            WHEN file = 'model_optim_rng.pt' THEN regexp_replace(folder, '/[^/]+$', '')
            ELSE folder
        END AS checkpoint,
        TRY_CAST(nullif(regexp_extract(file, '(?:pp|expp)_rank_(\d+)_', 1), '') AS INTEGER) AS dp,
        TRY_CAST(nullif(
            coalesce(
                nullif(regexp_extract(source, 'mp_rank_(\d+)', 1), ''),
                CASE WHEN role = 'layer' THEN coalesce(nullif(regexp_extract(file, '-model_(\d+)', 1), ''), '0') END
            ), ''
        ) AS INTEGER) AS mp
    FROM roles
),

facts AS (
    SELECT
        run_id, source,
        coalesce(
            max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'global_steps'),
            max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'iteration')
        ) AS global_steps,
        max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'skipped_steps') AS skipped_steps,
        max(TRY_CAST(value AS BIGINT)) FILTER (WHERE regexp_matches(key, '\.\d+\.step$')) AS optimizer_step,
        max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'dp_world_size') AS dp_world_size,
        max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'mp_world_size') AS mp_world_size,
        max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'checkpoint_parallel_dimensions.pp_degree') AS pp_degree,
        max(list_max(list_transform(regexp_extract_all(value, '\d+'), LAMBDA x: TRY_CAST(x AS BIGINT))))
        FILTER (WHERE regexp_matches(key, '^optimizer_state_dict\.partition_count(\.\d+)?$')) AS partition_count,
        coalesce(
            max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'optimizer_state_dict.zero_stage'),
            max(TRY_CAST(value AS BIGINT)) FILTER (WHERE key = 'ds_config.zero_optimization.stage')
        ) AS zero_stage
    FROM checkpoint_state
    GROUP BY run_id, source
),

joined AS (
    SELECT
        placed.run_id, placed.source, placed.checkpoint,
        CASE
            WHEN placed.role = 'tag' THEN placed.checkpoint
            ELSE coalesce(nullif(regexp_extract(placed.checkpoint, '^(.*)/[^/]*$', 1), ''), '.')
        END AS root,
        regexp_replace(placed.checkpoint, '^.*/', '') AS tag,
        placed.role, placed.dp, placed.mp, placed.file,
        coalesce(f.status, CASE placed.read_status WHEN 'empty' THEN 'empty' WHEN 'failed' THEN 'unreadable' ELSE 'unknown' END)
            AS status,
        f.content, f.checked, f.defect, f."offset", f."end", coalesce(f.bytes, placed.bytes) AS bytes,
        f.storage_bytes, f.modified, f.stem,
        facts.global_steps, facts.skipped_steps, facts.optimizer_step, facts.dp_world_size, facts.mp_world_size,
        facts.partition_count, facts.zero_stage, facts.pp_degree
    FROM placed
    LEFT JOIN checkpoint_file AS f ON placed.run_id = f.run_id AND placed.source = f.source
    LEFT JOIN facts ON placed.run_id = facts.run_id AND placed.source = facts.source
    WHERE placed.role <> 'other' OR f.source IS NOT NULL
),

sized AS (
    SELECT
        joined.*,
        max(greatest(coalesce(mp_world_size, 1), coalesce(mp, 0) + 1)) OVER (PARTITION BY run_id, checkpoint) AS parallel,
        max(pp_degree) OVER (PARTITION BY run_id, checkpoint) AS stages
    FROM joined
)

SELECT
    run_id, source, checkpoint, root, tag,
    TRY_CAST(nullif(regexp_extract(tag, '(?:global_step|iter_|checkpoint-|step[-_=]?)(\d+)$', 1), '') AS BIGINT) AS tag_step,
    role, dp, mp,
    -- Axes of deepspeed's topology: data before model (runtime/pipe/topology.py); pipeline stages come before both.
    CAST(CASE
        WHEN role = 'dcp' THEN TRY_CAST(nullif(regexp_extract(file, '^__(\d{1,7})_', 1), '') AS INTEGER)
        WHEN role NOT IN ('optimizer', 'model_shard') OR dp IS NULL THEN NULL
        WHEN parallel = 1 THEN dp
        WHEN stages = 1 THEN dp * parallel + mp
    END AS INTEGER) AS rank,
    file, status, content, checked, defect, "offset", "end", bytes, storage_bytes, modified, stem,
    global_steps, skipped_steps, optimizer_step, dp_world_size, mp_world_size, partition_count, zero_stage
FROM sized
ORDER BY run_id, checkpoint, file
