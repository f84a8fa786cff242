/*---
title = "Whether two runs are twins, and where they part"
doc   = """
Twins are two runs of one job with equal settings, seed, data order and number of ranks: on deterministic hardware every printed loss and every shard is equal to the last bit. They are taken for twins when no setting that moves numbers differs and everything they print agrees to the last digit for the first steps. Then the first step at which a printed number parts, and the first checkpoint in which shards differ, locate a silent fault: when some shards differ while the others are still bit-equal, it was in those. It cannot say which of the two runs is the healthy one. Where they are no twins, the row says why and nothing else."""
reads = ["twin_metric", "twin_block", "config", "run_summary", "checkpoint_shard", "checkpoint_tensor"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
agree = { type = "BIGINT", default = 5, doc = "Steps from the first on that must agree to the last digit." }
[returns]
twins = "BOOLEAN"
why = "VARCHAR"
agreed_steps = "BIGINT"
step = "BIGINT"
metric = "VARCHAR"
rank = "INTEGER"
before_text = "VARCHAR"
after_text = "VARCHAR"
tag = "VARCHAR"
tag_step = "BIGINT"
shards = "BIGINT"
differing = "BIGINT"
shard_ranks = "INTEGER[]"
shard_sources = "VARCHAR[]"
confidence = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "they agree for five steps and part at the sixth; one shard of two differed before"
given.twin_metric = """
run_id | rank | step | name | value | text | source | line
before | 0    | 1    | loss | 9     | 9.0  | l      | 1
before | 0    | 2    | loss | 8     | 8.0  | l      | 2
before | 0    | 3    | loss | 7     | 7.0  | l      | 3
before | 0    | 4    | loss | 6     | 6.0  | l      | 4
before | 0    | 5    | loss | 5     | 5.0  | l      | 5
before | 0    | 6    | loss | 4.1   | 4.1  | l      | 6
after  | 0    | 1    | loss | 9     | 9.0  | l      | 1
after  | 0    | 2    | loss | 8     | 8.0  | l      | 2
after  | 0    | 3    | loss | 7     | 7.0  | l      | 3
after  | 0    | 4    | loss | 6     | 6.0  | l      | 4
after  | 0    | 5    | loss | 5     | 5.0  | l      | 5
after  | 0    | 6    | loss | 4.0   | 4.0  | l      | 6
"""
given.checkpoint_shard = """
run_id | source | tag | tag_step | role      | dp | mp | rank | status
before | a/0    | t   | 5        | optimizer | 0  | 0  | 0    | complete
before | a/1    | t   | 5        | optimizer | 1  | 0  | 1    | complete
after  | b/0    | t   | 5        | optimizer | 0  | 0  | 0    | complete
after  | b/1    | t   | 5        | optimizer | 1  | 0  | 1    | complete
"""
given.checkpoint_tensor = """
run_id | source | path | kind    | numel | crc32
before | a/0    | p    | fp32    | 4     | 1
before | a/1    | p    | fp32    | 4     | 2
after  | b/0    | p    | fp32    | 4     | 1
after  | b/1    | p    | fp32    | 4     | 9
"""
expect = """
twins | agreed_steps | step | metric | before_text | after_text | tag | tag_step | shards | differing | shard_ranks | confidence
true  | 5            | 6    | loss   | 4.1         | 4.0        | t   | 5        | 2      | 1         | [1]         | high
"""
[[case]]
name = "another seed: no twins, nothing more"
given.twin_metric = """
run_id | rank | step | name | value | text
before | 0    | 1    | loss | 9     | 9.0
after  | 0    | 1    | loss | 8     | 8.0
"""
given.config = """
run_id | kind      | key  | value
before | deepspeed | seed | 1
after  | deepspeed | seed | 2
"""
expect = """
twins | why                                   | step | tag | confidence
false | no twins: the runs differ in seed     |      |     |
"""
[[case]]
name = "losses differ from the start; equal settings"
given.twin_metric = """
run_id | rank | step | name | value | text
before | 0    | 1    | loss | 9     | 9.0
after  | 0    | 1    | loss | 8     | 8.0
"""
given.config = """
run_id | kind      | key              | value
before | deepspeed | csv.output_path  | "a"
after  | deepspeed | csv.output_path  | "b"
"""
expect = """
twins | why                                                                                       | step
false | no twins: what they print agrees for 0 steps from the first on, not 5 (seed or data order) |
"""
[[case]]
name = "equal to the end: a block of five steps, two of them on another rank; then two steps, read as the runs have not all the same"
given.twin_block = """
run_id | rank | name | block | digest | steps
before | 0    | loss | 0     | 7      | 7
before | 1    | loss | 0     | 8      | 24
before | 0    | lr   | 0     | 9      | 255
after  | 0    | loss | 0     | 7      | 7
after  | 1    | loss | 0     | 8      | 24
after  | 0    | lr   | 0     | 9      | 255
before | 0    | loss | 1     | 5      | 3
after  | 0    | loss | 1     | 6      | 7
"""
given.twin_metric = """
run_id | rank | step | name | value | text
before | 0    | 64   | loss | 9     | 9.0
before | 0    | 65   | loss | 8     | 8.0
after  | 0    | 64   | loss | 9     | 9.0
after  | 0    | 65   | loss | 8     | 8.0
after  | 0    | 66   | loss | 7     | 7.0
"""
params.agree = 7
expect = """
twins | agreed_steps | step | tag | confidence | text
true  | 7            |      |     |            | twins: every number that both print agrees to the last digit over 7 steps
"""
---*/
WITH joined AS (
    SELECT
        b.rank, b.step, b.name, b.text AS before_text, a.text AS after_text, b.source, b.line,
        (b.text <> a.text AND b.value IS DISTINCT FROM a.value) AS parts
    FROM twin_metric AS b
    INNER JOIN twin_metric AS a ON coalesce(b.rank, -1) = coalesce(a.rank, -1) AND b.step = a.step AND b.name = a.name
    WHERE b.run_id = $before AND a.run_id = $after
),

parting AS (
    SELECT step, name, rank, before_text, after_text, source, line
    FROM joined
    WHERE parts
    ORDER BY step, name NOT LIKE '%loss%', rank, name
    LIMIT 1
),

read_steps AS (
    SELECT count(DISTINCT step) AS steps
    FROM joined
    WHERE
        step < coalesce((SELECT p.step FROM parting AS p), step + 1)
        AND (name LIKE '%loss%' OR name LIKE '%grad_norm%' OR name LIKE '%perplexity%')
),

-- Blocks of steps in which both print the same were not read one by one.
equal_blocks AS (
    SELECT bit_count(bit_or(b.steps)) AS steps
    FROM twin_block AS b
    INNER JOIN twin_block AS a
        ON
            coalesce(b.rank, -1) = coalesce(a.rank, -1) AND b.name = a.name AND b.block = a.block
            AND b.digest = a.digest
    WHERE
        b.run_id = $before AND a.run_id = $after
        AND (b.name LIKE '%loss%' OR b.name LIKE '%grad_norm%' OR b.name LIKE '%perplexity%')
        AND 64 * b.block < coalesce((SELECT p.step FROM parting AS p), 64 * b.block + 1)
        AND b.block NOT IN (SELECT DISTINCT j.step // 64 FROM joined AS j)
    GROUP BY b.block
),

agreement AS (
    SELECT CAST(r.steps + coalesce((SELECT sum(e.steps) FROM equal_blocks AS e), 0) AS BIGINT) AS steps
    FROM read_steps AS r
),

-- A key can be stated several times; the set of its values is what is compared.
settings AS (
    SELECT run_id, key, list_sort(list(DISTINCT value)) AS value
    FROM config
    WHERE
        run_id IN ($before, $after) AND kind IN ('deepspeed', 'trainer', 'model', 'arguments')
        AND NOT regexp_matches(
            lower(key),
            'path|dir|name|file|output|monitor|tensorboard|wandb|comet|print|wall_clock|logger|logging|profil|dump|port|addr'
            || '|save|checkpoint|rank|verbos|debug|host|report|timer|aio'
        )
        -- Of a script's own arguments only those are known to move numbers.
        AND (
            kind <> 'arguments'
            OR regexp_matches(lower(key), 'seed|batch|accum|lr|learning|warmup|decay|optim|epoch|data|model|layer|hidden|seq|precision|fp16|bf16|dtype|clip|shuffle')
        )
    GROUP BY run_id, key
),

recorded AS (
    SELECT count(DISTINCT run_id) = 2 AS in_both FROM settings
),

differing_settings AS (
    SELECT string_agg(coalesce(b.key, a.key), ', ' ORDER BY coalesce(b.key, a.key)) AS keys
    FROM (SELECT key, value FROM settings WHERE run_id = $before) AS b
    FULL JOIN (SELECT key, value FROM settings WHERE run_id = $after) AS a ON b.key = a.key
    WHERE b.value IS DISTINCT FROM a.value AND (SELECT in_both FROM recorded)
),

sizes AS (
    SELECT
        max(world_size) FILTER (WHERE name = $before) AS before_size,
        max(world_size) FILTER (WHERE name = $after) AS after_size
    FROM run_summary
),

status AS (
    SELECT
        CASE
            WHEN before_size <> after_size THEN 'no twins: ' || before_size || ' and ' || after_size || ' ranks'
            WHEN keys IS NOT NULL THEN 'no twins: the runs differ in ' || keys
            WHEN steps < $agree AND (SELECT count(*) FROM parting) > 0
                THEN 'no twins: what they print agrees for ' || steps || ' steps from the first on, not ' || $agree || ' (seed or data order)'
            WHEN steps < $agree THEN 'not known: they have only ' || steps || ' printed steps in common'
        END AS why,
        steps
    FROM sizes, differing_settings, agreement
),

compared AS (
    SELECT
        b.tag, b.tag_step, b.rank, b.source,
        bool_or(x.crc32 <> y.crc32) AS differs
    FROM checkpoint_shard AS b
    INNER JOIN checkpoint_shard AS a
        ON
            b.tag = a.tag AND b.role = a.role AND b.dp = a.dp AND b.mp = a.mp
            AND b.status = 'complete' AND a.status = 'complete'
    INNER JOIN checkpoint_tensor AS x ON b.run_id = x.run_id AND b.source = x.source
    INNER JOIN checkpoint_tensor AS y
        ON a.run_id = y.run_id AND a.source = y.source AND x.path = y.path AND x.numel = y.numel
    WHERE
        b.run_id = $before AND a.run_id = $after AND b.role = 'optimizer'
        AND x.kind IN ('fp32', 'exp_avg', 'exp_avg_sq', 'momentum')
        AND x.crc32 IS NOT NULL AND y.crc32 IS NOT NULL
    GROUP BY b.tag, b.tag_step, b.rank, b.source
),

tags AS (
    SELECT
        tag, tag_step, count(*) AS shards, count(*) FILTER (WHERE differs) AS differing,
        list(rank ORDER BY rank) FILTER (WHERE differs AND rank IS NOT NULL) AS shard_ranks,
        list(source ORDER BY source) FILTER (WHERE differs) AS shard_sources
    FROM compared
    GROUP BY tag, tag_step
    HAVING count(*) FILTER (WHERE differs) > 0
    ORDER BY tag_step NULLS LAST, tag
    LIMIT 1
),

facts AS (
    SELECT
        status.why IS NULL AS twins, status.why, status.steps,
        parting.step, parting.name, parting.rank, parting.before_text, parting.after_text, parting.source, parting.line,
        tags.tag, tags.tag_step, tags.shards, tags.differing, tags.shard_ranks, tags.shard_sources,
        CASE
            WHEN tags.tag IS NULL AND parting.step IS NULL THEN NULL
            WHEN tags.differing < tags.shards THEN 'high'
            ELSE 'low'
        END AS confidence
    FROM status
    LEFT JOIN parting ON status.why IS NULL
    LEFT JOIN tags ON status.why IS NULL
)

SELECT
    twins, why, steps AS agreed_steps, step, name AS metric, rank, before_text, after_text,
    tag, tag_step, shards, differing, shard_ranks, shard_sources, confidence, source, line,
    CASE
        WHEN NOT twins THEN why
        WHEN confidence IS NULL THEN 'twins: every number that both print agrees to the last digit over ' || steps || ' steps'
        ELSE
            'twins that part'
            || coalesce(
                ': ' || name || coalesce(' of rank ' || rank, '') || ' at step ' || step || ' is ' || before_text || ' and ' || after_text
                || ', after ' || steps || ' steps that agree to the last digit', ''
            )
            || CASE
                WHEN tag IS NULL THEN '; no checkpoint of both shows which shard differs'
                WHEN differing < shards
                    THEN
                        '; in checkpoint ' || tag || ' the shard' || CASE WHEN differing > 1 THEN 's' ELSE '' END || ' of rank '
                        || coalesce(array_to_string(shard_ranks, ', '), '?') || ' differ' || CASE WHEN differing > 1 THEN '' ELSE 's' END
                        || ' while the other ' || (shards - differing) || ' are bit-equal'
                ELSE '; in checkpoint ' || tag || ' all ' || shards || ' shards differ'
            END
    END AS text
FROM facts
