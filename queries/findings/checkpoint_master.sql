/*---
title    = "16-bit weights are not the rounded master weights"
doc      = "After a step of stage 1 or 2, every bfloat16 or float16 parameter is its float32 master copy, rounded. The master copy lies in pieces on several ranks: sums of bit patterns (and of their squares) add up over the pieces, so they can be compared without joining the shards. Where one rank holds the whole parameter, its shard is named."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "medium"
weight   = 2
reads    = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_parameter", "checkpoint_tag"]
summary  = "weights and master weights of checkpoint {tag} disagree: {text}"
[returns]
tag = "VARCHAR"
name = "VARCHAR"
shard_rank = "INTEGER"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "one parameter of two is not its rounded master"
given.checkpoint_tag = """
checkpoint | tag | complete | zero_stage
c/t        | t   | true     | 1
"""
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | mp | rank | status
m      | c/t        | t   | model     |    | 0  |      | complete
a      | c/t        | t   | optimizer | 0  | 0  | 0    | complete
b      | c/t        | t   | optimizer | 1  | 0  | 1    | complete
"""
given.checkpoint_tensor = """
source | path     | kind      | name | numel | bits | bits_squared
m      | module.w | parameter | w    | 4     | 10   | 30
m      | module.v | parameter | v    | 2     | 7    | 25
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel | start | bits | bits_squared
a      | slice | 0     | 0        | w    | 3     | 0     | 6    | 14
b      | slice | 0     | 0        | w    | 1     | 0     | 4    | 16
b      | slice | 0     | 1        | v    | 2     | 1     | 8    | 34
"""
expect = """
tag | name | shard_rank | source | text
t   | v    | 1          | m      | v in m is not the rounded master copy in b
"""
[[case]]
name = "a piece was not read, or lies on a rank that is missing"
given.checkpoint_tag = """
checkpoint | tag | complete | zero_stage
c/t        | t   | true     | 1
"""
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | mp | rank | status
m      | c/t        | t   | model     |    | 0  |      | complete
a      | c/t        | t   | optimizer | 0  | 0  | 0    | complete
"""
given.checkpoint_tensor = """
source | path     | kind      | name | numel | bits | bits_squared
m      | module.w | parameter | w    | 4     | 10   | 30
m      | module.v | parameter | v    | 2     | 7    | 25
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel | start | bits | bits_squared
a      | slice | 0     | 0        | w    | 3     | 0     | 6    | 14
a      | slice | 0     | 1        | v    | 2     | 3     |      |
"""
expect = "tag | name"
---*/
WITH pieces AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.tag, shard.mp, p.name,
        sum(p.numel) AS numel, count(*) AS pieces, count(p.bits) AS read,
        sum(p.bits) AS bits, sum(CAST(p.bits_squared AS HUGEINT)) % CAST(9223372036854775808 AS HUGEINT) AS bits_squared,
        count(DISTINCT shard.source) AS files, min(shard.source) AS source, min(shard.rank) AS rank
    FROM checkpoint_parameter AS p
    INNER JOIN checkpoint_shard AS shard ON p.run_id = shard.run_id AND p.source = shard.source
    INNER JOIN checkpoint_tag AS tag ON shard.run_id = tag.run_id AND shard.checkpoint = tag.checkpoint
    WHERE p.kind = 'slice' AND shard.role = 'optimizer' AND tag.complete
    GROUP BY shard.run_id, shard.checkpoint, shard.tag, shard.mp, p.name
)

SELECT
    pieces.tag, pieces.name,
    CASE WHEN pieces.files = 1 THEN pieces.rank END AS shard_rank,
    tensor.source,
    pieces.name || ' in ' || tensor.source || ' is not the rounded master copy in '
    || CASE WHEN pieces.files = 1 THEN pieces.source ELSE pieces.files || ' shards' END AS text
FROM pieces
INNER JOIN checkpoint_shard AS model
    ON
        pieces.run_id = model.run_id AND pieces.checkpoint = model.checkpoint AND pieces.mp = model.mp
        AND model.role = 'model'
INNER JOIN checkpoint_tensor AS tensor
    ON model.run_id = tensor.run_id AND model.source = tensor.source AND pieces.name = tensor.name
WHERE
    tensor.kind = 'parameter' AND tensor.bits IS NOT NULL
    AND pieces.read = pieces.pieces AND pieces.numel = tensor.numel
    AND (pieces.bits <> tensor.bits OR pieces.bits_squared <> tensor.bits_squared)
ORDER BY pieces.tag, pieces.name
