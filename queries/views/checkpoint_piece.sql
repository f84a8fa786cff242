/*---
title = "Every piece of every tensor of a distributed checkpoint, with its bytes and what they look like"
doc   = "Statements of .metadata joined to the items of the data files (torch.distributed.checkpoint). origin and piece say which part of the full shape it is, rank who wrote the file, offset and end where the piece's elements are in it; statistics only where values were read. problem: how the item differs from its statement."
reads = ["checkpoint_parameter", "checkpoint_shard", "checkpoint_tensor"]
[returns]
run_id = "VARCHAR"
checkpoint = "VARCHAR"
tag = "VARCHAR"
step = "BIGINT"
name = "VARCHAR"
kind = "VARCHAR"
dtype = "VARCHAR"
shape = "BIGINT[]"
origin = "BIGINT[]"
piece = "BIGINT[]"
numel = "BIGINT"
stated_by = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
offset = "BIGINT"
end = "BIGINT"
nan = "BIGINT"
inf = "BIGINT"
zeros = "BIGINT"
min = "DOUBLE"
max = "DOUBLE"
mean = "DOUBLE"
l2 = "DOUBLE"
content = "VARCHAR"
problem = "VARCHAR"
[[case]]
name = "two halves of a weight, a moment of another type than stated, a setting, a piece that is stored nowhere"
given.checkpoint_shard = """
source          | checkpoint | tag | tag_step | role | rank | status
d/.metadata     | d          | d   | 5        | dcp  |      | complete
d/__0_0.distcp  | d          | d   | 5        | dcp  | 0    | complete
d/__1_0.distcp  | d          | d   | 5        | dcp  | 1    | complete
"""
given.checkpoint_parameter = """
source      | kind  | position | name                | dtype   | shape  | origin | piece | numel | file         | offset | bytes
d/.metadata | chunk | 0        | w                   | float32 | [4, 2] | [0, 0] | [2, 2] | 4    | __0_0.distcp | 0      | 900
d/.metadata | chunk | 1        | w                   | float32 | [4, 2] | [2, 0] | [2, 2] | 4    | __1_0.distcp | 0      | 900
d/.metadata | chunk | 2        | optim.w.exp_avg_sq  | float32 | [4]    | [0]    | [4]    | 4    | __1_0.distcp | 900    | 800
d/.metadata | chunk | 3        | lr                  |         |        |        |        |      | __1_0.distcp | 1700   | 600
d/.metadata | chunk | 4        | b                   | float32 | [2]    | [0]    | [2]    | 2    |              |        |
"""
given.checkpoint_tensor = """
source         | path | kind  | dtype    | shape  | numel | offset | bytes | nan | l2
d/__0_0.distcp | 0    | other | float32  | [2, 2] | 4     | 704    | 16    | 0   | 1.5
d/__1_0.distcp | 0    | other | float32  | [2, 2] | 4     | 704    | 16    | 1   | 2.5
d/__1_0.distcp | 900  | other | bfloat16 | [4]    | 4     | 1604   | 8     | 0   | 0.5
"""
expect = """
name               | kind       | origin | source         | rank | offset | end  | nan | l2  | problem
w                  | parameter  | [0, 0] | d/__0_0.distcp | 0    | 704    | 720  | 0   | 1.5 |
w                  | parameter  | [2, 0] | d/__1_0.distcp | 1    | 704    | 720  | 1   | 2.5 |
optim.w.exp_avg_sq | exp_avg_sq | [0]    | d/__1_0.distcp | 1    | 1604   | 1612 | 0   | 0.5 | is stated as 4 elements of float32 and stored as 4 of bfloat16
b                  | parameter  | [0]    |                |      |        |      |     |     | is stored in no file
"""
[[case]]
name = "no item where one is stated; a file that is not there or was not read is no problem of the piece"
given.checkpoint_shard = """
source          | checkpoint | tag | role | rank | status
d/.metadata     | d          | d   | dcp  |      | complete
d/__0_0.distcp  | d          | d   | dcp  | 0    | complete
d/__1_0.distcp  | d          | d   | dcp  | 1    | truncated
"""
given.checkpoint_parameter = """
source      | kind  | position | name | dtype   | shape | origin | piece | numel | file         | offset | bytes
d/.metadata | chunk | 0        | w    | float32 | [6]   | [0]    | [2]   | 2     | __0_0.distcp | 40     | 900
d/.metadata | chunk | 1        | w    | float32 | [6]   | [2]    | [2]   | 2     | __1_0.distcp | 40     | 900
d/.metadata | chunk | 2        | w    | float32 | [6]   | [4]    | [2]   | 2     | __2_0.distcp | 40     | 900
"""
given.checkpoint_tensor = """
source         | path | kind  | dtype    | shape  | numel
d/__0_0.distcp | 0    | other | float32  | [2, 2] | 4
"""
expect = """
origin | source         | problem
[0]    | d/__0_0.distcp | is not at byte 40 of the file, where it is stated to be
[2]    | d/__1_0.distcp |
[4]    | d/__2_0.distcp |
"""
---*/
WITH stated AS (
    SELECT
        p.run_id, p.source AS stated_by, p."position", p.name, p.dtype, p.shape, p.origin, p.piece, p.numel, p."offset" AS item,
        coalesce(nullif(regexp_extract(p.source, '^(.*/)[^/]*$', 1), ''), '') || p.file AS source
    FROM checkpoint_parameter AS p
    WHERE p.kind = 'chunk' AND p.piece IS NOT NULL
)

SELECT
    stated.run_id, meta.checkpoint, meta.tag, meta.tag_step AS step, stated.name,
    CASE
        WHEN regexp_matches(stated.name, '(^|\.)exp_avg_sq$') THEN 'exp_avg_sq'
        WHEN regexp_matches(stated.name, '(^|\.)exp_avg$') THEN 'exp_avg'
        WHEN regexp_matches(stated.name, '(^|\.)step$') THEN 'step'
        WHEN regexp_matches(stated.name, '(^|\.)optim(izer)?(\.|_|$)') THEN 'other'
        ELSE 'parameter'
    END AS kind,
    coalesce(stated.dtype, tensor.dtype) AS dtype, stated.shape, stated.origin, stated.piece, stated.numel,
    stated.stated_by, stated.source, shard.rank,
    tensor."offset", tensor."offset" + tensor.bytes AS "end",
    tensor.nan, tensor.inf, tensor.zeros, tensor.min, tensor.max, tensor.mean, tensor.l2, tensor.content,
    CASE
        WHEN stated.source IS NULL THEN 'is stored in no file'
        WHEN tensor.path IS NULL AND shard.status = 'complete'
            THEN 'is not at byte ' || stated.item || ' of the file, where it is stated to be'
        WHEN tensor.numel <> stated.numel OR tensor.dtype <> stated.dtype
            THEN
                'is stated as ' || stated.numel || ' elements of ' || coalesce(stated.dtype, 'some type')
                || ' and stored as ' || tensor.numel || ' of ' || tensor.dtype
    END AS problem
FROM stated
LEFT JOIN checkpoint_shard AS meta ON stated.run_id = meta.run_id AND stated.stated_by = meta.source
LEFT JOIN checkpoint_shard AS shard ON stated.run_id = shard.run_id AND stated.source = shard.source
LEFT JOIN checkpoint_tensor AS tensor
    ON stated.run_id = tensor.run_id AND stated.source = tensor.source AND tensor.path = CAST(stated.item AS VARCHAR)
ORDER BY stated.run_id, stated.stated_by, stated."position"
