/*---
title    = "A parameter group never received a gradient"
doc      = "The first moment of a whole flat group is zero in a shard although its optimizer has taken steps: the parameters are frozen, unused, or their gradients vanish."
severity = "note"
reads    = ["checkpoint_shard", "checkpoint_tensor"]
summary  = "{text}"
[returns]
tag = "VARCHAR"
step = "BIGINT"
shard_rank = "INTEGER"
path = "VARCHAR"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "a moment of zeros after twenty steps"
given.checkpoint_shard = """
source | tag | tag_step | role      | rank | status   | optimizer_step
a      | t   | 20       | optimizer | 1    | complete | 20
"""
given.checkpoint_tensor = """
source | path | kind    | numel | zeros
a      | p    | exp_avg | 10    | 10
a      | q    | exp_avg | 10    | 3
"""
expect = """
tag | step | shard_rank | path | source | text
t   | 20   | 1          | p    | a      | in a, p is all zero after 20 steps
"""
[[case]]
name = "no step was taken yet, or the values were not read"
given.checkpoint_shard = """
source | tag | tag_step | role      | rank | status   | optimizer_step
a      | t   | 0        | optimizer | 1    | complete | 0
b      | u   | 20       | optimizer | 1    | complete | 20
"""
given.checkpoint_tensor = """
source | path | kind    | numel | zeros
a      | p    | exp_avg | 10    | 10
b      | p    | exp_avg | 10    |
"""
expect = "tag | step"
---*/
SELECT
    shard.tag, shard.tag_step AS step, shard.rank AS shard_rank, tensor.path, tensor.source,
    'in ' || tensor.source || ', ' || tensor.path || ' is all zero after ' || shard.optimizer_step || ' steps' AS text
FROM checkpoint_tensor AS tensor
INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
WHERE
    tensor.kind = 'exp_avg' AND tensor.numel > 0 AND tensor.zeros = tensor.numel
    AND shard.status = 'complete' AND shard.optimizer_step > 0
ORDER BY tensor.source, tensor.path
