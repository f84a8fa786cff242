/*---
title    = "A checkpoint file lies under another file's name"
doc      = "torch.save names the archive's root folder after the file it writes, so a shard that was copied or renamed over another rank's keeps the name it was born with."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 4
reads    = ["checkpoint_shard"]
summary  = "{source} was written as {stem}"
[returns]
tag = "VARCHAR"
shard_rank = "INTEGER"
source = "VARCHAR"
stem = "VARCHAR"
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
name = "its own name, a neutral one, and a weights file that was renamed"
given.checkpoint_shard = """
source | tag | role      | rank | file                                      | stem
a      | t   | optimizer | 1    | zero_pp_rank_1_mp_rank_00_optim_states.pt | zero_pp_rank_1_mp_rank_00_optim_states
b      | t   | optimizer | 1    | zero_pp_rank_1_mp_rank_00_optim_states.pt | archive
d      | t   | weights   |      | pytorch_model.bin                         | final
"""
expect = "tag | shard_rank"
---*/
SELECT tag, rank AS shard_rank, source, stem, source || ' was written as ' || stem || '.pt' AS text
FROM checkpoint_shard
WHERE
    role IN ('optimizer', 'model', 'model_shard', 'layer', 'expert', 'expert_optimizer')
    AND regexp_matches(stem, '(model|optim)_states$')
    AND stem || '.pt' <> file
ORDER BY source
