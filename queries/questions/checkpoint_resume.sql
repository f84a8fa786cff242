/*---
title = "Which checkpoint can be resumed from, and what each is good for"
doc   = "The newest checkpoint of each folder that is complete and beyond doubt is marked with resume. use: resume (weights and optimizer states are whole), weights (the model files are whole, optimizer states are not), nothing."
reads = ["checkpoint_tag", "checkpoint_shard", "checkpoint_doubt"]
[returns]
run_id = "VARCHAR"
root = "VARCHAR"
tag = "VARCHAR"
step = "BIGINT"
use = "VARCHAR"
resume = "BOOLEAN"
named = "BOOLEAN"
whole = "BIGINT"
expected = "BIGINT"
checked = "VARCHAR"
why = "VARCHAR"
[[case]]
name = "the newest is not whole; its weights are"
given.checkpoint_tag = """
checkpoint | root | tag | step | zero_stage | width | parallel | expected | whole | complete | named | doubt
c/a        | c    | a   | 10   | 1          | 1     | 1        | 2        | 2     | true     | false |
c/d        | c    | d   | 15   | 1          | 1     | 1        | 2        | 2     | true     | false | 1 file(s) hold NaN or infinities
c/b        | c    | b   | 20   | 1          | 1     | 1        | 2        | 1     | false    | true  |
c/e        | c    | e   | 18   | 1          | 1     | 1        | 2        | 2     | true     | false |
"""
given.checkpoint_doubt = """
checkpoint | doubt
c/e        | its shards disagree
"""
given.checkpoint_shard = """
source | checkpoint | role      | status    | checked
a      | c/a        | model     | complete  | values
b      | c/a        | optimizer | complete  | structure
x      | c/d        | model     | complete  | values
y      | c/e        | model     | complete  | values
d      | c/b        | model     | complete  | values
e      | c/b        | optimizer | truncated | structure
"""
expect = """
tag | step | use     | resume | named | checked   | why
a   | 10   | resume  | true   | false | structure |
d   | 15   | nothing | false  | false | values    | 1 file(s) hold NaN or infinities
e   | 18   | nothing | false  | false | values    | its shards disagree
b   | 20   | weights | false  | true  | structure | 1 of 2 files are whole
"""
---*/
WITH parts AS (
    SELECT
        run_id, checkpoint,
        count(*) FILTER (WHERE role IN ('model', 'model_shard') AND status = 'complete') AS models,
        bool_or(role = 'model_shard') AS sharded,
        -- The weakest check counts: structure before values.
        min(coalesce(checked, 'structure')) AS checked
    FROM checkpoint_shard
    WHERE role <> 'tag'
    GROUP BY run_id, checkpoint
),

trusted AS (
    SELECT tag.* REPLACE (coalesce(d.doubt, tag.doubt) AS doubt)
    FROM checkpoint_tag AS tag
    LEFT JOIN checkpoint_doubt AS d ON tag.run_id = d.run_id AND tag.checkpoint = d.checkpoint
),

judged AS (
    SELECT
        tag.*, parts.checked,
        CASE
            WHEN tag.complete AND tag.doubt IS NULL THEN 'resume'
            WHEN tag.complete THEN 'nothing'
            -- Stage 3's model files hold no weights of their own.
            WHEN NOT parts.sharded AND coalesce(tag.zero_stage, 0) < 3 AND parts.models >= tag.parallel THEN 'weights'
            ELSE 'nothing'
        END AS use
    FROM trusted AS tag
    INNER JOIN parts ON tag.run_id = parts.run_id AND tag.checkpoint = parts.checkpoint
)

SELECT
    run_id, root, tag, step, use,
    use = 'resume' AND row_number() OVER (PARTITION BY run_id, root, use ORDER BY step DESC NULLS LAST, tag DESC) = 1 AS resume,
    named, whole, expected, checked,
    CASE WHEN NOT complete THEN whole || ' of ' || expected || ' files are whole' ELSE doubt END AS why
FROM judged
ORDER BY run_id, root, step NULLS FIRST, tag
