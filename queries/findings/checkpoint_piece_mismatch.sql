/*---
title    = "The pieces of a checkpoint are not where its index says"
doc      = "Every tensor that .metadata states is cut into pieces that cover it once, and every piece is stored where and as it is stated (torch/distributed/checkpoint/metadata.py of pytorch/pytorch). An index of weights names the file that holds each tensor (huggingface/transformers). Missing and short files have findings of their own."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_piece", "checkpoint_parameter", "checkpoint_shard", "checkpoint_tensor"]
summary  = "{n} tensor(s) of a checkpoint do not fit its index: {text}"
[returns]
run_id = "VARCHAR"
tag = "VARCHAR"
shard_rank = "INTEGER"
name = "VARCHAR"
source = "VARCHAR"
offset = "BIGINT"
end = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a piece of another type, a tensor that is not covered"
given.checkpoint_piece = """
tag | name | shape | origin | numel | stated_by   | source         | rank | offset | end | problem
d   | w    | [4]   | [0]    | 2     | d/.metadata | d/__0_0.distcp | 0    | 704    | 720 |
d   | b    | [2]   | [0]    | 2     | d/.metadata | d/__1_0.distcp | 1    | 900    | 904 | is stated as 2 elements of float32 and stored as 2 of bfloat16
"""
expect = """
tag | shard_rank | name | source         | offset | text
d   |            | w    | d/.metadata    |        | the pieces of w in d/.metadata hold 2 elements, its shape makes 4
d   | 1          | b    | d/__1_0.distcp | 900    | the piece of b at [0] in d/__1_0.distcp is stated as 2 elements of float32 and stored as 2 of bfloat16
"""
[[case]]
name = "a tensor that its file lacks; files that were not read, or hold more, are no matter"
given.checkpoint_shard = """
source            | checkpoint | tag | role    | status
h/one.safetensors | h          | h   | weights | complete
h/two.safetensors | h          | h   | weights | damaged
"""
given.checkpoint_parameter = """
source       | kind | position | name | file
h/index.json | file | 0        | a    | one.safetensors
h/index.json | file | 1        | b    | one.safetensors
h/index.json | file | 2        | d    | two.safetensors
"""
given.checkpoint_tensor = """
source            | path | name
h/one.safetensors | a    | a
h/one.safetensors | z    | z
"""
expect = """
tag | name | source            | text
h   | b    | h/one.safetensors | h/one.safetensors does not hold b, which h/index.json says it does
"""
[[case]]
name = "two halves; a scalar; an empty tensor; a file that is not there"
given.checkpoint_piece = """
tag | name | shape  | origin | numel | stated_by   | source         | rank | problem
d   | w    | [2, 2] | [0, 0] | 2     | d/.metadata | d/__0_0.distcp | 0    |
d   | w    | [2, 2] | [1, 0] | 2     | d/.metadata | d/__1_0.distcp | 1    |
d   | s    | []     | []     | 1     | d/.metadata | d/__1_0.distcp | 1    |
d   | z    | [0, 3] | [0, 0] | 0     | d/.metadata | d/__1_0.distcp | 1    |
"""
expect = "tag | name"
---*/
WITH covered AS (
    SELECT
        run_id, tag, name, stated_by, sum(numel) AS held,
        coalesce(list_product(any_value(shape)), 1) AS wanted
    FROM (SELECT DISTINCT run_id, tag, name, stated_by, shape, origin, numel FROM checkpoint_piece)
    GROUP BY run_id, tag, name, stated_by
),

indexed AS (
    SELECT
        run_id, source AS stated_by, name,
        coalesce(nullif(regexp_extract(source, '^(.*/)[^/]*$', 1), ''), '') || file AS file
    FROM checkpoint_parameter
    WHERE kind = 'file' AND file IS NOT NULL
)

SELECT
    run_id, tag, NULL AS shard_rank, name, stated_by AS source, NULL AS "offset", NULL AS "end",
    'the pieces of ' || name || ' in ' || stated_by || ' hold ' || held || ' elements, its shape makes ' || CAST(wanted AS BIGINT) AS text
FROM covered
WHERE held <> wanted
UNION ALL
SELECT
    run_id, tag, rank, name, coalesce(source, stated_by), "offset", "end",
    'the piece of ' || name || ' at ' || CAST(origin AS VARCHAR) || ' in ' || coalesce(source, stated_by) || ' ' || problem
FROM checkpoint_piece
WHERE problem IS NOT NULL
UNION ALL
SELECT
    shard.run_id, shard.tag, NULL, min(indexed.name), shard.source, NULL, NULL,
    shard.source || ' does not hold ' || min(indexed.name)
    || CASE WHEN count(*) > 1 THEN ' and ' || count(*) - 1 || ' more' ELSE '' END || ', which ' || indexed.stated_by || ' says it does'
FROM indexed
INNER JOIN checkpoint_shard AS shard ON indexed.run_id = shard.run_id AND indexed.file = shard.source
ANTI JOIN checkpoint_tensor AS tensor
    ON indexed.run_id = tensor.run_id AND indexed.file = tensor.source AND indexed.name = tensor.path
WHERE shard.status = 'complete'
GROUP BY shard.run_id, shard.tag, shard.source, indexed.stated_by
ORDER BY source, name
