/*---
title    = "A checkpoint holds NaN, infinities or impossible moments"
doc      = "NaN or infinities in weights, master weights or moments, or a negative second moment. Only tensors whose values were read are judged (small files, or --checkpoints deep). Which rank's shard holds them does not say which rank began it."
fault    = "nan_inf"
severity = "fault"
kind     = "state"
confidence = "high"
reads    = ["checkpoint_shard", "checkpoint_tensor"]
summary  = "checkpoint {tag} holds values that no training can go on from: {text}"
[returns]
tag = "VARCHAR"
step = "BIGINT"
shard_rank = "INTEGER"
culprit = "BOOLEAN"
path = "VARCHAR"
offset = "BIGINT"
end = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "NaN in a master shard, a negative second moment"
given.checkpoint_shard = """
source | tag | tag_step | role      | rank
a      | t   | 20       | optimizer | 2
"""
given.checkpoint_tensor = """
source | path | kind       | nan | inf | min  | offset | bytes | numel
a      | p    | fp32       | 3   | 0   | -1   | 64     | 40    | 10
a      | q    | exp_avg_sq | 0   | 0   | -0.5 | 104    | 40    | 10
a      | r    | exp_avg    | 0   | 0   | -1   | 144    | 40    | 10
"""
expect = """
tag | step | shard_rank | path | offset | text
t   | 20   | 2          | p    | 64     | a: p has 3 NaN and 0 infinite of 10 elements
t   | 20   | 2          | q    | 104    | a: q has a negative second moment, -0.5
"""
[[case]]
name = "finite, or not read; masks of the script's own may hold infinities"
given.checkpoint_shard = """
source | tag | tag_step | role      | rank
a      | t   | 20       | optimizer | 2
"""
given.checkpoint_tensor = """
source | path | kind  | nan | inf | min | numel
a      | p    | fp32  | 0   | 0   | -1  | 10
a      | q    | fp32  |     |     |     | 10
a      | m    | other | 0   | 5   | -1  | 10
a      | m    | buffer | 0  | 5   | -1  | 10
"""
expect = "tag | path"
---*/
SELECT
    shard.tag, shard.tag_step AS step, shard.rank AS shard_rank, FALSE AS culprit, tensor.path,
    tensor."offset", tensor."offset" + tensor.bytes AS "end", tensor.source,
    tensor.source || ': ' || tensor.path
    || CASE
        WHEN tensor.nan > 0 OR tensor.inf > 0
            THEN ' has ' || tensor.nan || ' NaN and ' || tensor.inf || ' infinite of ' || tensor.numel || ' elements'
        ELSE ' has a negative second moment, ' || tensor.min
    END AS text
FROM checkpoint_tensor AS tensor
INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
WHERE
    tensor.kind IN ('parameter', 'fp32', 'exp_avg', 'exp_avg_sq', 'momentum')
    AND (tensor.nan > 0 OR tensor.inf > 0 OR (tensor.kind = 'exp_avg_sq' AND tensor.min < 0))
ORDER BY tensor.source, tensor.path
