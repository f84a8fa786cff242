/*---
title    = "The step counters of a checkpoint do not fit its name or each other"
doc      = "global_steps equals N of the tag global_stepN, the optimizer cannot have taken more steps than the engine, and where the optimizer's steps differ between shards, those that equal global_steps - skipped_steps are of the right generation."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_shard"]
summary  = "checkpoint {tag} mixes generations: {text}"
[returns]
tag = "VARCHAR"
shard_rank = "INTEGER"
step = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "a model file and an optimizer shard from other tags"
given.checkpoint_shard = """
source | checkpoint | tag           | tag_step | role      | dp | rank | global_steps | skipped_steps | optimizer_step
a      | c/t        | global_step20 | 20       | model     |    |      | 40           | 0             |
b      | c/u        | mine          |          | model     |    |      | 20           | 1             |
d      | c/u        | mine          |          | optimizer | 0  | 0    |              |               | 19
e      | c/u        | mine          |          | optimizer | 1  | 1    |              |               | 10
"""
expect = """
tag           | shard_rank | source | text
global_step20 |            | a      | a is of step 40, the checkpoint of step 20
mine          | 1          | e      | e has optimizer step 10, the others 19
"""
[[case]]
name = "a young optimizer in all shards, skipped steps, a tag without a number"
given.checkpoint_shard = """
source | checkpoint | tag           | tag_step | role      | dp | rank | global_steps | skipped_steps | optimizer_step
a      | c/t        | global_step20 | 20       | model     |    |      | 20           | 0             |
b      | c/t        | global_step20 | 20       | optimizer | 0  | 0    |              |               | 5
d      | c/t        | global_step20 | 20       | optimizer | 1  | 1    |              |               | 5
e      | c/u        | best          |          | model     |    |      | 20           | 3             |
f      | c/u        | best          |          | optimizer | 0  | 0    |              |               | 17
"""
expect = "tag | source"
---*/
WITH engines AS (
    SELECT
        run_id, checkpoint,
        -- A model file of another step is reported by itself; it does not make the optimizer wrong.
        coalesce(
            max(CASE WHEN regexp_matches(tag, '^(global_step|iter_)\d+$') THEN tag_step END), max(global_steps)
        ) AS steps,
        max(skipped_steps) AS skipped
    FROM checkpoint_shard
    GROUP BY run_id, checkpoint
),

expected AS (
    SELECT
        shard.run_id, shard.checkpoint, engines.steps,
        engines.steps - coalesce(engines.skipped, 0) AS wanted,
        bool_or(shard.optimizer_step = engines.steps - coalesce(engines.skipped, 0)) AS met
    FROM checkpoint_shard AS shard
    INNER JOIN engines ON shard.run_id = engines.run_id AND shard.checkpoint = engines.checkpoint
    WHERE shard.optimizer_step IS NOT NULL
    GROUP BY shard.run_id, shard.checkpoint, engines.steps, engines.skipped
)

SELECT
    tag, rank AS shard_rank, global_steps AS step, source,
    source || ' is of step ' || global_steps || ', the checkpoint of step ' || tag_step AS text
FROM checkpoint_shard
WHERE
    role IN ('model', 'model_shard') AND global_steps <> tag_step
    AND regexp_matches(tag, '^(global_step|iter_)\d+$')
UNION ALL
SELECT
    shard.tag, shard.rank, shard.optimizer_step, shard.source,
    shard.source || ' has optimizer step ' || shard.optimizer_step
    || CASE WHEN expected.met THEN ', the others ' || expected.wanted ELSE ', the engine only ' || expected.steps END
FROM checkpoint_shard AS shard
INNER JOIN expected ON shard.run_id = expected.run_id AND shard.checkpoint = expected.checkpoint
WHERE (expected.met AND shard.optimizer_step <> expected.wanted) OR (shard.optimizer_step > expected.steps)
ORDER BY source
