/*---
title    = "A checkpoint was saved right after a skipped step"
doc      = "The optimizer state says overflow: the step before the save was skipped because gradients were not finite. Common while the loss scale is searched."
severity = "note"
reads    = ["checkpoint_shard", "checkpoint_state"]
summary  = "checkpoint {tag} was saved right after a step that was skipped for an overflow"
[returns]
tag = "VARCHAR"
step = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "overflow"
given.checkpoint_shard = """
source | tag | tag_step | role
a      | t   | 20       | optimizer
b      | t   | 20       | optimizer
"""
given.checkpoint_state = """
source | key                           | value
a      | optimizer_state_dict.overflow | true
b      | optimizer_state_dict.overflow | true
"""
expect = """
tag | step | source | text
t   | 20   | a      | overflow is true in 2 shards of t
"""
[[case]]
name = "no overflow"
given.checkpoint_shard = """
source | tag | tag_step | role
a      | t   | 20       | optimizer
"""
given.checkpoint_state = """
source | key                           | value
a      | optimizer_state_dict.overflow | false
"""
expect = "tag | step"
---*/
SELECT
    shard.tag, shard.tag_step AS step, min(shard.source) AS source,
    'overflow is true in ' || count(*) || ' shards of ' || shard.tag AS text
FROM checkpoint_state AS state
INNER JOIN checkpoint_shard AS shard ON state.run_id = shard.run_id AND state.source = shard.source
WHERE state.key = 'optimizer_state_dict.overflow' AND state.value = 'true'
GROUP BY shard.run_id, shard.checkpoint, shard.tag, shard.tag_step
ORDER BY shard.tag
