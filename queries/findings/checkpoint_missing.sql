/*---
title    = "A checkpoint lacks files"
doc      = "Shards of the grid of data- and model-parallel ranks that a settled checkpoint should hold and does not, layers, experts and parameters that the rest of the checkpoint or its peers call for, and files that an index names and that are not there. The grid's width comes from partition_count and dp_world_size (utils/zero_to_fp32.py of deepspeedai/DeepSpeed)."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 4
reads    = ["checkpoint_shard", "checkpoint_tag", "checkpoint_absent"]
summary  = "{n} checkpoint file(s) are missing: {text}"
[returns]
tag = "VARCHAR"
role = "VARCHAR"
dp = "BIGINT"
mp = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "one of three optimizer shards is missing"
given.checkpoint_tag = """
checkpoint | tag | width | parallel | zero_stage | optimizers | settled
c/t        | t   | 3     | 1        | 1          | 2          | true
"""
given.checkpoint_shard = """
source | checkpoint | role      | dp | mp
a      | c/t        | model     |    | 0
b      | c/t        | optimizer | 0  | 0
d      | c/t        | optimizer | 2  | 0
"""
expect = """
tag | role      | dp | mp | source | text
t   | optimizer | 1  | 0  | c/t    | c/t has no optimizer states of data-parallel rank 1, model-parallel rank 0 (2 of 3 are there)
"""
[[case]]
name = "an expert of a settled checkpoint, none of one in the making"
given.checkpoint_tag = """
checkpoint | tag | settled | width | parallel | optimizers
c/t        | t   | true    | 0     | 0        | 0
c/u        | u   | false   | 0     | 0        | 0
"""
given.checkpoint_absent = """
checkpoint | tag | role   | source                                          | short | why
c/t        | t   | expert | c/t/layer_0_expert_3_mp_rank_00_model_states.pt | false | num_experts is 4
c/u        | u   | expert | c/u/layer_0_expert_3_mp_rank_00_model_states.pt | false | num_experts is 4
d          | d   | dcp    | d/__1_0.distcp                                  | true  | d/.metadata needs 110 bytes of it, it has 100
"""
expect = """
tag | role   | source                                          | text
t   | expert | c/t/layer_0_expert_3_mp_rank_00_model_states.pt | c/t/layer_0_expert_3_mp_rank_00_model_states.pt is missing: num_experts is 4
d   | dcp    | d/__1_0.distcp                                  | d/__1_0.distcp is too short: d/.metadata needs 110 bytes of it, it has 100
"""
[[case]]
name = "all there; weights kept without optimizer states of an older tag; an unsettled tag"
given.checkpoint_tag = """
checkpoint | tag | width | parallel | zero_stage | optimizers | settled | named
c/t        | t   | 1     | 1        | 1          | 1          | true    | true
c/o        | o   | 4     | 1        | 1          | 0          | true    | false
c/u        | u   | 4     | 1        | 1          | 1          | false   | false
"""
given.checkpoint_shard = """
source | checkpoint | role      | dp | mp
a      | c/t        | model     |    | 0
b      | c/t        | optimizer | 0  | 0
d      | c/o        | model     |    | 0
e      | c/u        | model     |    | 0
f      | c/u        | optimizer | 0  | 0
"""
expect = "tag | role | dp | mp | source | text"
---*/
WITH grid AS (
    SELECT tag.run_id, tag.checkpoint, tag.tag, tag.zero_stage, tag.width, tag.optimizers, tag.named, d.i AS dp, m.i AS mp
    FROM checkpoint_tag AS tag
    CROSS JOIN LATERAL (SELECT unnest(range(least(tag.width, 100000))) AS i) AS d
    CROSS JOIN LATERAL (SELECT unnest(range(least(tag.parallel, 10000))) AS i) AS m
    WHERE tag.settled
),

sharded AS (
    SELECT run_id, checkpoint, bool_or(role = 'model_shard') AS models
    FROM checkpoint_shard
    GROUP BY run_id, checkpoint
),

wanted AS (
    SELECT run_id, checkpoint, tag, 'optimizer' AS role, dp, mp
    FROM grid
    WHERE optimizers > 0 OR (named AND zero_stage >= 1)
    UNION ALL
    SELECT grid.run_id, grid.checkpoint, grid.tag, 'model_shard', grid.dp, grid.mp
    FROM grid
    INNER JOIN sharded ON grid.run_id = sharded.run_id AND grid.checkpoint = sharded.checkpoint
    WHERE sharded.models OR grid.zero_stage = 3
    UNION ALL
    SELECT DISTINCT grid.run_id, grid.checkpoint, grid.tag, 'model', NULL, grid.mp
    FROM grid
    INNER JOIN sharded ON grid.run_id = sharded.run_id AND grid.checkpoint = sharded.checkpoint
    WHERE NOT sharded.models AND coalesce(grid.zero_stage, 0) < 3
),

lacking AS (
    SELECT wanted.*
    FROM wanted
    ANTI JOIN checkpoint_shard AS shard
        ON
            wanted.run_id = shard.run_id AND wanted.checkpoint = shard.checkpoint AND wanted.role = shard.role
            AND wanted.mp = shard.mp AND wanted.dp IS NOT DISTINCT FROM shard.dp
),

there AS (
    SELECT run_id, checkpoint, role, count(*) AS files FROM checkpoint_shard GROUP BY run_id, checkpoint, role
),

totals AS (
    SELECT run_id, checkpoint, role, count(*) AS files FROM wanted GROUP BY run_id, checkpoint, role
)

SELECT
    lacking.tag, lacking.role, lacking.dp, lacking.mp, lacking.checkpoint AS source,
    lacking.checkpoint || ' has no ' || CASE lacking.role WHEN 'optimizer' THEN 'optimizer states' ELSE 'model states' END
    || ' of ' || coalesce('data-parallel rank ' || lacking.dp || ', ', '') || 'model-parallel rank ' || lacking.mp
    || ' (' || coalesce(there.files, 0) || ' of ' || totals.files || ' are there)' AS text
FROM lacking
INNER JOIN totals
    ON lacking.run_id = totals.run_id AND lacking.checkpoint = totals.checkpoint AND lacking.role = totals.role
LEFT JOIN there
    ON lacking.run_id = there.run_id AND lacking.checkpoint = there.checkpoint AND lacking.role = there.role
UNION ALL
SELECT
    a.tag, a.role, NULL, NULL, a.source,
    a.source || CASE WHEN a.short THEN ' is too short: ' ELSE ' is missing: ' END || a.why
FROM checkpoint_absent AS a
LEFT JOIN checkpoint_tag AS tag ON a.run_id = tag.run_id AND a.checkpoint = tag.checkpoint
WHERE coalesce(tag.settled, TRUE)
ORDER BY source, role, dp, mp
