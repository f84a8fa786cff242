/*---
title    = "A checkpoint holds NaN, infinities or impossible moments"
doc      = "NaN or infinities in weights, master weights or moments, or a negative second moment. Only tensors whose values were read are judged (small files, or --checkpoints deep). Which rank's shard holds them does not say which rank began it."
fault    = "nan_inf"
severity = "fault"
kind     = "state"
confidence = "high"
reads    = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_piece"]
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
name = "a piece of a distributed checkpoint; infinities may belong to a mask there, unless the name says weight"
given.checkpoint_piece = """
tag | step | name       | kind      | origin | nan | inf | numel | min | source         | rank | offset | end
d   | 5    | w          | parameter | [2, 0] | 1   | 0   | 4     | 0   | d/__1_0.distcp | 1    | 704    | 720
d   | 5    | mask       | parameter | [0, 0] | 0   | 2   | 4     | 0   | d/__0_0.distcp | 0    | 800    | 816
d   | 5    | fc.weight  | parameter | [0, 0] | 0   | 2   | 4     | 0   | d/__0_0.distcp | 0    | 900    | 916
d   | 5    | w.exp_avg  | exp_avg   | [0, 0] | 0   | 0   | 4     | -1  | d/__0_0.distcp | 0    | 950    | 966
"""
expect = """
tag | step | shard_rank | path      | offset | text
d   | 5    | 0          | fc.weight | 900    | d/__0_0.distcp: fc.weight at [0, 0] has 0 NaN and 2 infinite of 4 elements
d   | 5    | 1          | w         | 704    | d/__1_0.distcp: w at [2, 0] has 1 NaN and 0 infinite of 4 elements
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
WITH held AS (
    SELECT
        shard.tag, shard.tag_step AS step, shard.rank, tensor.kind, tensor.path, tensor.path AS part,
        tensor."offset", tensor."offset" + tensor.bytes AS "end", tensor.nan, tensor.inf, tensor.numel, tensor.min, tensor.source
    FROM checkpoint_tensor AS tensor
    INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
    WHERE tensor.kind IN ('parameter', 'fp32', 'exp_avg', 'exp_avg_sq', 'momentum')
    UNION ALL
    SELECT
        tag, step, rank, kind, name, name || ' at ' || CAST(origin AS VARCHAR), "offset", "end", nan,
        CASE WHEN kind <> 'parameter' OR regexp_matches(name, '\.(weight|bias)$') THEN inf ELSE 0 END, numel, min, source
    FROM checkpoint_piece
)

SELECT
    tag, step, rank AS shard_rank, FALSE AS culprit, path, "offset", "end", source,
    source || ': ' || part
    || CASE
        WHEN nan > 0 OR inf > 0 THEN ' has ' || nan || ' NaN and ' || inf || ' infinite of ' || numel || ' elements'
        ELSE ' has a negative second moment, ' || min
    END AS text
FROM held
WHERE nan > 0 OR inf > 0 OR (kind = 'exp_avg_sq' AND min < 0)
ORDER BY source, path, part
