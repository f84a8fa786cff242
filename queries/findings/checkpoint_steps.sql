/*---
title    = "The step counters of a checkpoint do not fit its name or each other"
doc      = "global_steps equals N of the tag global_stepN, unless the training script counts its tags differently from the engine: a file is named where the optimizer's steps, its peers or the other checkpoints do follow the rule. Where the optimizer's steps differ between shards, those that equal global_steps - skipped_steps are of the right generation. The Trainer's state counts the steps that its folder checkpoint-N is named after (transformers/trainer.py of huggingface/transformers). In a distributed checkpoint, whose files each hold the steps of some parameters, the file is named whose steps differ from those of most."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 3
reads    = ["checkpoint_shard", "checkpoint_state", "checkpoint_piece"]
summary  = "checkpoint {tag} mixes generations: {text}"
[returns]
run_id = "VARCHAR"
tag = "VARCHAR"
shard_rank = "INTEGER"
step = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "a model file and an optimizer shard from other tags"
given.checkpoint_shard = """
source | checkpoint | root | tag           | tag_step | role      | dp | rank | global_steps | skipped_steps | optimizer_step
a      | c/t        | c    | global_step20 | 20       | model     |    |      | 40           | 0             |
z      | c/t        | c    | global_step20 | 20       | optimizer | 0  | 0    |              |               | 20
b      | c/u        | c    | mine          |          | model     |    |      | 20           | 1             |
d      | c/u        | c    | mine          |          | optimizer | 0  | 0    |              |               | 19
e      | c/u        | c    | mine          |          | optimizer | 1  | 1    |              |               | 10
"""
expect = """
tag           | shard_rank | source | text
global_step20 |            | a      | a is of step 40, the checkpoint of step 20
mine          | 1          | e      | e has optimizer step 10, the others 19
"""
[[case]]
name = "a file of a distributed checkpoint from another step"
given.checkpoint_piece = """
checkpoint | tag | step | name      | kind | source         | rank | numel | min | max
d          | d   |      | a.step    | step | d/__0_0.distcp | 0    | 1     | 50  | 50
d          | d   |      | b.step    | step | d/__1_0.distcp | 1    | 1     | 40  | 40
d          | d   |      | c.step    | step | d/__2_0.distcp | 2    | 1     | 50  | 50
f/x        | x   | 50   | a.step    | step | f/x/__0_0.distcp | 0  | 1     | 50  | 50
f/y        | y   | 60   | a.step    | step | f/y/__0_0.distcp | 0  | 1     | 50  | 50
e          | e   | 60   | a.step    | step | e/__0_0.distcp | 0    | 1     | 60  | 60
e          | e   | 60   | b.step    | step | e/__0_0.distcp | 0    | 1     | 10  | 10
e          | e   | 60   | c.step    | step | e/__1_0.distcp | 1    | 1     | 60  | 60
"""
expect = """
tag | shard_rank | step | source         | text
d   | 1          | 40   | d/__1_0.distcp | d/__1_0.distcp has optimizer step 40, the others 50
y   | 0          | 50   | f/y/__0_0.distcp | f/y/__0_0.distcp has optimizer step 50, the checkpoint is of step 60
"""
[[case]]
name = "a young optimizer in all shards, skipped steps, a tag without a number"
given.checkpoint_shard = """
source | checkpoint | root | tag           | tag_step | role      | dp | rank | global_steps | skipped_steps | optimizer_step
a      | c/t        | c    | global_step20 | 20       | model     |    |      | 20           | 0             |
b      | c/t        | c    | global_step20 | 20       | optimizer | 0  | 0    |              |               | 5
d      | c/t        | c    | global_step20 | 20       | optimizer | 1  | 1    |              |               | 5
e      | c/u        | c    | best          |          | model     |    |      | 20           | 3             |
f      | c/u        | c    | best          |          | optimizer | 0  | 0    |              |               | 17
"""
expect = "tag | source"
[[case]]
name = "a script that names its tags by its own count"
given.checkpoint_shard = """
source | checkpoint | root | tag           | tag_step | role      | dp | rank | global_steps | skipped_steps | optimizer_step
a      | c/t        | c    | global_step20 | 20       | model     |    |      | 520          | 0             |
b      | c/t        | c    | global_step20 | 20       | optimizer | 0  | 0    |              |               | 520
"""
expect = "tag | source"
[[case]]
name = "a Trainer's state of another folder; one of its own; one that lies elsewhere"
given.checkpoint_state = """
source                              | key                       | value
out/checkpoint-40/trainer_state.json | trainer_state.global_step | 20
out/checkpoint-20/trainer_state.json | trainer_state.global_step | 20
out/trainer_state.json              | trainer_state.global_step | 45
"""
expect = """
tag           | step | source                               | text
checkpoint-40 | 20   | out/checkpoint-40/trainer_state.json | out/checkpoint-40/trainer_state.json is of step 20, the checkpoint of step 40
"""
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
),

-- Folders in which something shows that N of the tag is the engine's count.
rule AS (
    SELECT DISTINCT shard.run_id, shard.root
    FROM checkpoint_shard AS shard
    INNER JOIN engines ON shard.run_id = engines.run_id AND shard.checkpoint = engines.checkpoint
    WHERE
        (shard.role IN ('model', 'model_shard') AND shard.global_steps = shard.tag_step)
        OR (shard.role = 'optimizer' AND shard.optimizer_step = shard.tag_step - coalesce(engines.skipped, 0))
),

-- A file's steps agree with each other, also where a parameter joined the training late: then no file is odd.
stepped AS (
    SELECT
        run_id, checkpoint, tag, step AS tag_step, source, any_value(rank) AS rank, CAST(min(min) AS BIGINT) AS step,
        bool_or(min(min) = step) OVER (PARTITION BY run_id, coalesce(nullif(regexp_extract(checkpoint, '^(.*)/[^/]*$', 1), ''), '.')) AS ruled,
        mode(min(min)) OVER (PARTITION BY run_id, checkpoint) AS usual,
        count(*) OVER (PARTITION BY run_id, checkpoint, min(min)) AS agreeing,
        count(*) OVER (PARTITION BY run_id, checkpoint) AS files,
        bool_and(min(min) = max(max)) OVER (PARTITION BY run_id, checkpoint) AS uniform
    FROM checkpoint_piece
    WHERE kind = 'step' AND numel = 1 AND source IS NOT NULL AND min IS NOT NULL
    GROUP BY run_id, checkpoint, tag, step, source
),

trainer AS (
    SELECT
        run_id, source, TRY_CAST(value AS BIGINT) AS step,
        regexp_extract(source, '(?:^|/)checkpoint-(\d+)/trainer_state\.json$', 1) AS named
    FROM checkpoint_state
    WHERE key = 'trainer_state.global_step'
)

SELECT
    shard.run_id, shard.tag, shard.rank AS shard_rank, shard.global_steps AS step, shard.source,
    shard.source || ' is of step ' || shard.global_steps || ', the checkpoint of step ' || shard.tag_step AS text
FROM checkpoint_shard AS shard
INNER JOIN rule ON shard.run_id = rule.run_id AND shard.root = rule.root
WHERE
    shard.role IN ('model', 'model_shard') AND shard.global_steps <> shard.tag_step
    AND regexp_matches(shard.tag, '^(global_step|iter_)\d+$')
UNION ALL
SELECT
    shard.run_id, shard.tag, shard.rank, shard.optimizer_step, shard.source,
    shard.source || ' has optimizer step ' || shard.optimizer_step
    || ', the others ' || expected.wanted
FROM checkpoint_shard AS shard
INNER JOIN expected ON shard.run_id = expected.run_id AND shard.checkpoint = expected.checkpoint
WHERE expected.met AND shard.optimizer_step <> expected.wanted
UNION ALL
SELECT
    run_id, tag, rank, step, source,
    source || ' has optimizer step ' || step
    || CASE
        WHEN ruled AND step <> tag_step THEN ', the checkpoint is of step ' || tag_step
        WHEN files = 2 THEN ', the other file another'
        ELSE ', the others ' || CAST(usual AS BIGINT)
    END
FROM stepped
WHERE
    uniform
    AND CASE WHEN ruled AND tag_step IS NOT NULL THEN step <> tag_step ELSE agreeing < files AND 2 * agreeing <= files END
UNION ALL
SELECT
    run_id, 'checkpoint-' || named, NULL, step, source, source || ' is of step ' || step || ', the checkpoint of step ' || named
FROM trainer
WHERE step <> TRY_CAST(named AS BIGINT)
ORDER BY source
