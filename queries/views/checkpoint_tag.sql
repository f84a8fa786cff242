/*---
title = "Every checkpoint: what it should hold, what it holds, and whether a run can resume from it"
doc   = "width is the number of data-parallel ranks and parallel that of model-parallel ones, as the files say; expected is the number of shard files that makes, with the layers, experts and parameters beside them (see checkpoint_absent). A distributed checkpoint (.metadata) is all of its files. named: a tag file points to it. complete: every expected file is there and whole. doubt: why no run should resume from it although its files are whole (values that are not finite, files under other names or of other steps). settled: named, or with .metadata, which is written last, or not newer than what the tag file names; a checkpoint that is not settled may have been in the making when the run ended."
reads = ["checkpoint_shard", "checkpoint_file", "checkpoint_absent", "checkpoint_tensor"]
materialize = true
[returns]
run_id = "VARCHAR"
checkpoint = "VARCHAR"
root = "VARCHAR"
tag = "VARCHAR"
step = "BIGINT"
zero_stage = "BIGINT"
width = "BIGINT"
parallel = "BIGINT"
expected = "BIGINT"
present = "BIGINT"
whole = "BIGINT"
optimizers = "BIGINT"
models = "BIGINT"
complete = "BOOLEAN"
named = "BOOLEAN"
settled = "BOOLEAN"
named_by = "VARCHAR"
doubt = "VARCHAR"
[[case]]
name = "two ranks of stage 1: one tag whole and named, one later tag that lacks a shard"
given.checkpoint_file = """
source   | container | points_to
c/latest | tag       | global_step20
"""
given.checkpoint_shard = """
source | checkpoint      | root | tag           | tag_step | role      | dp | mp | status   | partition_count | dp_world_size | zero_stage
c/l    | c               | c    | c             |          | tag       |    |    | complete |                 |               |
a      | c/global_step20 | c    | global_step20 | 20       | model     |    | 0  | complete |                 | 2             | 1
b      | c/global_step20 | c    | global_step20 | 20       | optimizer | 0  | 0  | complete | 2               |               | 1
d      | c/global_step20 | c    | global_step20 | 20       | optimizer | 1  | 0  | complete | 2               |               | 1
e      | c/global_step30 | c    | global_step30 | 30       | model     |    | 0  | complete |                 | 2             | 1
f      | c/global_step30 | c    | global_step30 | 30       | optimizer | 0  | 0  | damaged  | 2               |               | 1
"""
expect = """
tag           | step | width | parallel | expected | present | whole | complete | named | settled | named_by
global_step20 | 20   | 2     | 1        | 3        | 3       | 3     | true     | true  | true    | c/latest
global_step30 | 30   | 2     | 1        | 3        | 2       | 1     | false    | false | false   |
"""
[[case]]
name = "stage 3 writes a model file per rank"
given.checkpoint_shard = """
source | checkpoint | root | tag | role        | dp | mp | status   | partition_count | dp_world_size | zero_stage
a      | c/t        | c    | t   | model_shard | 0  | 0  | complete |                 | 2             | 3
b      | c/t        | c    | t   | optimizer   | 0  | 0  | complete | 2               |               | 3
d      | c/t        | c    | t   | optimizer   | 1  | 0  | complete | 2               |               | 3
"""
expect = """
tag | width | expected | present | complete | named | settled
t   | 2     | 4        | 3       | false    | false | false
"""
[[case]]
name = "a universal checkpoint has no optimizer shards"
given.checkpoint_shard = """
source | checkpoint    | root | tag         | role      | mp | status   | dp_world_size | zero_stage
a      | c/t_universal | c    | t_universal | model     | 0  | complete | 4             | 1
b      | c/t_universal | c    | t_universal | universal |    | complete |               |
"""
expect = """
tag         | zero_stage | expected | present | complete
t_universal |            | 2        | 2       | true
"""
[[case]]
name = "a distributed checkpoint, and one that was in the making"
given.checkpoint_shard = """
source        | checkpoint | root | tag | tag_step | role | file         | status
d/.metadata   | d          | .    | d   | 5        | dcp  | .metadata    | complete
d/__0_0.distcp | d         | .    | d   | 5        | dcp  | __0_0.distcp | complete
e/__0_0.distcp | e         | .    | e   | 6        | dcp  | __0_0.distcp | complete
"""
given.checkpoint_absent = """
checkpoint | tag | role | short | source
e          | e   | dcp  | false | e/.metadata
"""
expect = """
tag | expected | present | whole | complete | settled
d   | 2        | 2       | 2     | true     | true
e   | 2        | 1       | 1     | false    | false
"""
[[case]]
name = "whole files that no run should resume from"
given.checkpoint_shard = """
source | checkpoint | root | tag | role      | dp | mp | status   | partition_count | file                                      | stem                                  | optimizer_step
a      | c/t        | c    | t   | optimizer | 0  | 0  | complete | 2               | zero_pp_rank_0_mp_rank_00_optim_states.pt | zero_pp_rank_1_mp_rank_00_optim_states | 5
b      | c/t        | c    | t   | optimizer | 1  | 0  | complete | 2               | zero_pp_rank_1_mp_rank_00_optim_states.pt | archive                               | 6
m      | c/t        | c    | t   | model     |    | 0  | complete | 2               | mp_rank_00_model_states.pt                |                                       |
"""
given.checkpoint_tensor = """
source | path | kind   | nan | inf
m      | w    | buffer | 0   | 9
b      | p    | fp32   | 2   | 0
"""
expect = """
tag | complete | doubt
t   | true     | 1 file(s) hold NaN or infinities; 1 file(s) lie under the name of another; its optimizers are of different steps
"""
[[case]]
name = "a pipeline's layer is missing beside a whole grid"
given.checkpoint_shard = """
source | checkpoint | root | tag | role  | mp | status   | dp_world_size
a      | c/t        | c    | t   | model | 0  | complete | 1
b      | c/t        | c    | t   | layer | 0  | complete |
"""
given.checkpoint_absent = """
checkpoint | tag | role  | short | source
c/t        | t   | layer | false | c/t/layer_01-model_states.pt
"""
expect = """
tag | expected | present | whole | complete
t   | 3        | 2       | 2     | false
"""
---*/
WITH pointers AS (
    SELECT
        run_id, source,
        coalesce(nullif(regexp_extract(source, '^(.*)/[^/]*$', 1), ''), '.') AS root,
        points_to
    FROM checkpoint_file
    WHERE container = 'tag' AND points_to IS NOT NULL
),

tags AS (
    SELECT
        run_id, checkpoint, any_value(root) AS root, any_value(tag) AS tag,
        coalesce(any_value(tag_step), max(global_steps)) AS step,
        -- A universal checkpoint keeps the configuration of a stage, but not its shards.
        CASE WHEN count(*) FILTER (WHERE role = 'universal') = 0 THEN max(zero_stage) END AS zero_stage,
        -- The newest word on the width is the content's; a file name alone also counts.
        greatest(
            coalesce(max(partition_count) FILTER (WHERE role = 'optimizer'), 0),
            coalesce(max(dp_world_size), 0),
            coalesce(max(dp + 1) FILTER (WHERE role IN ('optimizer', 'model_shard')), 0)
        ) AS width,
        CASE
            WHEN bool_or(role IN ('optimizer', 'model', 'model_shard'))
                THEN greatest(coalesce(max(mp_world_size), 1), coalesce(max(mp + 1), 1))
            ELSE 0
        END AS parallel,
        count(*) FILTER (WHERE role = 'optimizer') AS optimizers,
        count(*) FILTER (WHERE role IN ('model', 'model_shard')) AS models,
        count(*) FILTER (WHERE role = 'model_shard') AS model_shards,
        count(*) FILTER (WHERE role IN ('layer', 'expert', 'expert_optimizer', 'universal', 'dcp')) AS others,
        count(*) FILTER (WHERE role NOT IN ('weights', 'other')) AS present,
        count(*) FILTER (WHERE role NOT IN ('weights', 'other') AND status = 'complete') AS whole,
        bool_or(file = '.metadata') AS described,
        bool_and(status = 'complete') AS sound
    FROM checkpoint_shard
    WHERE role <> 'tag'
    GROUP BY run_id, checkpoint
    HAVING count(*) FILTER (WHERE role IN ('optimizer', 'model', 'model_shard', 'dcp')) > 0
),

spoiled AS (
    SELECT DISTINCT run_id, source
    FROM checkpoint_tensor
    WHERE kind IN ('parameter', 'fp32', 'exp_avg', 'exp_avg_sq', 'momentum') AND (nan > 0 OR inf > 0)
),

doubts AS (
    SELECT
        shard.run_id, shard.checkpoint,
        nullif(concat_ws(
            '; ',
            CASE WHEN count(spoiled.source) > 0 THEN count(spoiled.source) || ' file(s) hold NaN or infinities' END,
            CASE
                WHEN count(*) FILTER (WHERE regexp_matches(shard.stem, '(model|optim)_states$') AND shard.stem || '.pt' <> shard.file) > 0
                    THEN
                        count(*) FILTER (WHERE regexp_matches(shard.stem, '(model|optim)_states$') AND shard.stem || '.pt' <> shard.file)
                        || ' file(s) lie under the name of another'
            END,
            CASE
                WHEN count(DISTINCT shard.optimizer_step) FILTER (WHERE shard.role = 'optimizer') > 1
                    THEN 'its optimizers are of different steps'
            END,
            CASE
                WHEN count(DISTINCT shard.global_steps) FILTER (WHERE shard.role IN ('model', 'model_shard')) > 1
                    THEN 'its model files are of different steps'
            END
        ), '') AS doubt
    FROM checkpoint_shard AS shard
    LEFT JOIN spoiled ON shard.run_id = spoiled.run_id AND shard.source = spoiled.source
    WHERE shard.role NOT IN ('weights', 'other', 'tag')
    GROUP BY shard.run_id, shard.checkpoint
),

lacking AS (
    SELECT run_id, checkpoint, count(*) AS parts, count(*) FILTER (WHERE NOT short) AS files
    FROM checkpoint_absent
    GROUP BY run_id, checkpoint
),

counted AS (
    SELECT
        tags.*, coalesce(lacking.parts, 0) AS absent,
        -- Megatron has more model files than tensor-parallel ranks: one per pipeline stage, too.
        CASE WHEN optimizers > 0 OR zero_stage >= 1 THEN width * parallel ELSE 0 END
        + CASE
            WHEN model_shards > 0 OR (zero_stage = 3 AND optimizers > 0) THEN width * parallel
            ELSE greatest(parallel, models)
        END
        + others + coalesce(lacking.files, 0) AS expected
    FROM tags
    LEFT JOIN lacking ON tags.run_id = lacking.run_id AND tags.checkpoint = lacking.checkpoint
),

judged AS (
    SELECT
        counted.*,
        pointers.source AS named_by,
        max(CASE WHEN pointers.source IS NOT NULL THEN counted.step END)
            OVER (PARTITION BY counted.run_id, counted.root) AS named_step
    FROM counted
    LEFT JOIN pointers
        ON counted.run_id = pointers.run_id AND counted.root = pointers.root AND counted.tag = pointers.points_to
)

SELECT
    judged.run_id, judged.checkpoint, root, tag, step, zero_stage, width, parallel, expected, present, whole, optimizers, models,
    sound AND absent = 0 AND present >= expected AS complete,
    named_by IS NOT NULL AS named,
    named_by IS NOT NULL OR coalesce(described, FALSE) OR coalesce(step < named_step, FALSE)
    OR coalesce(step < max(step) OVER (PARTITION BY judged.run_id, judged.root), FALSE) AND named_step IS NULL AS settled,
    named_by, doubts.doubt
FROM judged
LEFT JOIN doubts ON judged.run_id = doubts.run_id AND judged.checkpoint = doubts.checkpoint
ORDER BY judged.run_id, root, step NULLS FIRST, tag
