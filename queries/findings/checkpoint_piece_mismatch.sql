/*---
title    = "The pieces of a distributed checkpoint do not make its tensors"
doc      = "Every tensor that .metadata states is cut into pieces that cover it once, and every piece is stored where and as it is stated (torch/distributed/checkpoint/metadata.py of pytorch/pytorch). Missing and short files have findings of their own."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_piece"]
summary  = "{n} tensor(s) of a distributed checkpoint do not fit their metadata: {text}"
[returns]
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
)

SELECT
    tag, NULL AS shard_rank, name, stated_by AS source, NULL AS "offset", NULL AS "end",
    'the pieces of ' || name || ' in ' || stated_by || ' hold ' || held || ' elements, its shape makes ' || CAST(wanted AS BIGINT) AS text
FROM covered
WHERE held <> wanted
UNION ALL
SELECT
    tag, rank, name, coalesce(source, stated_by), "offset", "end",
    'the piece of ' || name || ' at ' || CAST(origin AS VARCHAR) || ' in ' || coalesce(source, stated_by) || ' ' || problem
FROM checkpoint_piece
WHERE problem IS NOT NULL
ORDER BY source, name
