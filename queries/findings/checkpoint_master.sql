/*---
title    = "16-bit weights are not the rounded master weights"
doc      = "After a step of stage 1 or 2, every bfloat16 or float16 parameter is its float32 master copy, rounded. The master copy lies in pieces on several ranks: sums of bit patterns (and of their squares) add up over the pieces, so they can be compared without joining the shards. Where exactly the parameters of one shard differ, that shard is named, otherwise the model file is; where one rank holds the whole parameter, so is its rank."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "medium"
weight   = 2
reads    = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_parameter", "checkpoint_tag"]
summary  = "weights and master weights of checkpoint {tag} disagree: {text}"
[returns]
run_id = "VARCHAR"
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
name = "all that one shard holds differs, the rest fits: it is the shard"
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
m      | module.u | parameter | u    | 3     | 6    | 14
m      | module.w | parameter | w    | 4     | 10   | 30
m      | module.v | parameter | v    | 2     | 7    | 25
"""
given.checkpoint_parameter = """
source | kind  | group | position | name | numel | start | bits | bits_squared
a      | slice | 0     | 0        | u    | 3     | 0     | 6    | 14
a      | slice | 0     | 1        | w    | 3     | 3     | 6    | 14
b      | slice | 0     | 1        | w    | 1     | 0     | 5    | 25
b      | slice | 0     | 2        | v    | 2     | 1     | 8    | 34
"""
expect = """
tag | name | shard_rank | source | text
t   | v    | 1          | b      | v in m is not the rounded master copy in b, nor is anything else that shard holds, and all else fits
t   | w    | 1          | b      | w in m is not the rounded master copy in 2 shards, nor is anything else that the shard b holds, and all else fits
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
),

judged AS (
    SELECT
        pieces.*, tensor.source AS model,
        pieces.bits <> tensor.bits OR pieces.bits_squared <> tensor.bits_squared AS differs
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
),

totals AS (
    SELECT run_id, checkpoint, mp, count(*) FILTER (WHERE differs) AS differing, count(*) AS parameters
    FROM judged
    GROUP BY run_id, checkpoint, mp
),

-- A shard of which every whole parameter differs, and that has a piece of every parameter that does.
blamed AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.mp, shard.source, shard.rank,
        count(*) OVER (PARTITION BY shard.run_id, shard.checkpoint, shard.mp) AS shards
    FROM checkpoint_shard AS shard
    INNER JOIN (SELECT DISTINCT run_id, source, name FROM checkpoint_parameter WHERE kind = 'slice') AS p
        ON shard.run_id = p.run_id AND shard.source = p.source
    INNER JOIN judged
        ON
            shard.run_id = judged.run_id AND shard.checkpoint = judged.checkpoint AND shard.mp = judged.mp
            AND p.name = judged.name
    INNER JOIN totals ON shard.run_id = totals.run_id AND shard.checkpoint = totals.checkpoint AND shard.mp = totals.mp
    WHERE shard.role = 'optimizer'
    GROUP BY shard.run_id, shard.checkpoint, shard.mp, shard.source, shard.rank
    HAVING
        count(*) FILTER (WHERE judged.differs) = max(totals.differing)
        AND max(totals.differing) > 1 AND max(totals.parameters) > max(totals.differing)
        AND count(*) FILTER (WHERE judged.files = 1) > 0
        AND count(*) FILTER (WHERE judged.files = 1 AND NOT judged.differs) = 0
)

SELECT
    judged.run_id, judged.tag, judged.name,
    coalesce(blamed.rank, CASE WHEN judged.files = 1 THEN judged.rank END) AS shard_rank,
    coalesce(blamed.source, judged.model) AS source,
    judged.name || ' in ' || judged.model || ' is not the rounded master copy in '
    || CASE WHEN judged.files = 1 THEN judged.source ELSE judged.files || ' shards' END
    || CASE
        WHEN blamed.source IS NULL THEN ''
        WHEN judged.files = 1 THEN ', nor is anything else that shard holds, and all else fits'
        ELSE ', nor is anything else that the shard ' || blamed.source || ' holds, and all else fits'
    END AS text
FROM judged
LEFT JOIN blamed
    ON judged.run_id = blamed.run_id AND judged.checkpoint = blamed.checkpoint AND judged.mp = blamed.mp AND blamed.shards = 1
WHERE judged.differs
ORDER BY judged.tag, judged.name
