/*---
title    = "A checkpoint file lies under another file's name"
doc      = "torch.save names the archive's root folder after the file it writes, so a shard that was copied or renamed over another rank's keeps the name it was born with. Older files and buffers keep none; then an expert is known by the number in the names of its tensors (_save_moe_checkpoint in runtime/engine.py of deepspeedai/DeepSpeed), and of two ranks' shards with the very same master weights one must lie in the other's place: which, no one can tell."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 4
reads    = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_group"]
summary  = "{text}"
[returns]
tag = "VARCHAR"
shard_rank = "INTEGER"
source = "VARCHAR"
stem = "VARCHAR"
culprit = "BOOLEAN"
text = "VARCHAR"
[[case]]
name = "rank 2's shard under rank 1's name"
given.checkpoint_shard = """
source | tag | role      | rank | file                                      | stem
a      | t   | optimizer | 1    | zero_pp_rank_1_mp_rank_00_optim_states.pt | zero_pp_rank_2_mp_rank_00_optim_states
"""
expect = """
tag | shard_rank | source | text
t   | 1          | a      | a was written as zero_pp_rank_2_mp_rank_00_optim_states.pt
"""
[[case]]
name = "an expert under another's name, two ranks with the same weights; a group of experts that two ranks share"
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | mp | rank | status   | file                                        | stem
e      | c/t        | t   | expert    |    | 0  |      | complete | layer_0_expert_1_mp_rank_00_model_states.pt | archive
a      | c/t        | t   | optimizer | 0  | 0  | 0    | complete | zero_pp_rank_0_mp_rank_00_optim_states.pt   |
b      | c/t        | t   | optimizer | 1  | 0  | 1    | complete | zero_pp_rank_1_mp_rank_00_optim_states.pt   |
d      | c/t        | t   | optimizer | 2  | 0  | 2    | complete | zero_pp_rank_2_mp_rank_00_optim_states.pt   |
"""
given.checkpoint_group = """
source | group | partitions
a      | 0     | 3
a      | 1     | 1
b      | 0     | 3
b      | 1     | 1
d      | 0     | 3
d      | 1     | 1
"""
given.checkpoint_tensor = """
source | path                            | kind      | group | numel | min | max | content
e      | h.deepspeed_experts.2.fc.weight | parameter |       | 4     | 0   | 1   | ee
a      | p                               | fp32      | 0     | 4     | 0   | 1   | aa
a      | q                               | fp32      | 1     | 4     | 0   | 1   | xx
b      | p                               | fp32      | 0     | 4     | 0   | 1   | aa
b      | q                               | fp32      | 1     | 4     | 0   | 1   | xx
d      | p                               | fp32      | 0     | 4     | 0   | 1   | dd
d      | q                               | fp32      | 1     | 4     | 0   | 1   | xx
"""
expect = """
tag | shard_rank | source | culprit | text
t   | 0          | a      | false   | a and b hold the same master weights, which two ranks never do
t   | 1          | b      | false   | b and a hold the same master weights, which two ranks never do
t   |            | e      | true    | e holds expert 2
"""
[[case]]
name = "its own name, a neutral one, and a weights file that was renamed"
given.checkpoint_shard = """
source | tag | role      | rank | file                                      | stem
a      | t   | optimizer | 1    | zero_pp_rank_1_mp_rank_00_optim_states.pt | zero_pp_rank_1_mp_rank_00_optim_states
b      | t   | optimizer | 1    | zero_pp_rank_1_mp_rank_00_optim_states.pt | archive
d      | t   | weights   |      | pytorch_model.bin                         | final
"""
expect = "tag | shard_rank"
---*/
WITH experts AS (
    SELECT run_id, source, min(TRY_CAST(regexp_extract(path, 'deepspeed_experts\.(\d+)\.', 1) AS INTEGER)) AS expert
    FROM checkpoint_tensor
    WHERE regexp_matches(path, 'deepspeed_experts\.\d+\.')
    GROUP BY run_id, source
    HAVING count(DISTINCT regexp_extract(path, 'deepspeed_experts\.(\d+)\.', 1)) = 1
),

whole AS (
    SELECT run_id, source, "group" FROM checkpoint_group
    QUALIFY partitions = max(partitions) OVER (PARTITION BY run_id, source) AND partitions > 1
),

weights AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.tag, shard.mp, shard.rank, shard.source,
        string_agg(tensor.content, ' ' ORDER BY tensor."group") AS content
    FROM checkpoint_shard AS shard
    INNER JOIN checkpoint_tensor AS tensor ON shard.run_id = tensor.run_id AND shard.source = tensor.source
    INNER JOIN whole ON tensor.run_id = whole.run_id AND tensor.source = whole.source AND tensor."group" = whole."group"
    -- Ranks beyond the partitions hold further copies (MiCS).
    WHERE
        shard.role = 'optimizer' AND shard.status = 'complete' AND tensor.kind = 'fp32' AND tensor.content IS NOT NULL
        AND shard.dp < coalesce(shard.partition_count, shard.dp + 1)
    GROUP BY shard.run_id, shard.checkpoint, shard.tag, shard.mp, shard.rank, shard.source
    -- Weights that were never trained can be one number everywhere.
    HAVING bool_or(tensor.min < tensor.max)
)

SELECT tag, rank AS shard_rank, source, stem, TRUE AS culprit, source || ' was written as ' || stem || '.pt' AS text
FROM checkpoint_shard
WHERE
    role IN ('optimizer', 'model', 'model_shard', 'layer', 'expert', 'expert_optimizer')
    AND regexp_matches(stem, '(model|optim)_states$')
    AND stem || '.pt' <> file
UNION ALL
SELECT shard.tag, shard.rank, shard.source, shard.stem, TRUE, shard.source || ' holds expert ' || experts.expert
FROM checkpoint_shard AS shard
INNER JOIN experts ON shard.run_id = experts.run_id AND shard.source = experts.source
WHERE
    shard.role = 'expert' AND TRY_CAST(regexp_extract(shard.file, 'expert_(\d+)_', 1) AS INTEGER) <> experts.expert
    AND coalesce(NOT regexp_matches(shard.stem, '(model|optim)_states$') OR shard.stem || '.pt' = shard.file, TRUE)
UNION ALL
SELECT
    a.tag, a.rank, a.source, NULL, FALSE,
    a.source || ' and ' || min(b.source) || ' hold the same master weights, which two ranks never do'
FROM weights AS a
INNER JOIN weights AS b
    ON a.run_id = b.run_id AND a.checkpoint = b.checkpoint AND a.mp = b.mp AND a.content = b.content AND a.source <> b.source
GROUP BY a.tag, a.rank, a.source
ORDER BY source
