/*---
title = "Ranks by checkpoint: whole, damaged, missing or differing"
doc   = "One row per file that a checkpoint should hold; of universal checkpoints only those parameters that are not whole. state: complete, damaged (also truncated, empty, refused, foreign, unreadable), missing, disagrees (its structure is whole but it contradicts its name or its peers) or not finite (it holds NaN or infinities). The byte range is that of the first defect. whole: the checkpoint is complete; resume: it is the newest of its folder that is complete and beyond doubt (see checkpoint_doubt); named: a tag file points to it."
reads = ["checkpoint_tag", "checkpoint_doubt", "checkpoint_shard", "checkpoint_absent", "checkpoint_tensor"]
[returns]
run_id = "VARCHAR"
root = "VARCHAR"
tag = "VARCHAR"
step = "BIGINT"
role = "VARCHAR"
dp = "INTEGER"
mp = "INTEGER"
rank = "INTEGER"
state = "VARCHAR"
checked = "VARCHAR"
source = "VARCHAR"
bytes = "BIGINT"
offset = "BIGINT"
end = "BIGINT"
text = "VARCHAR"
whole = "BOOLEAN"
resume = "BOOLEAN"
named = "BOOLEAN"
[[case]]
name = "a whole shard, a truncated one, one that is not there"
given.checkpoint_tag = """
checkpoint | root | tag | step | width | parallel | optimizers | zero_stage | complete | named
c/t        | c    | t   | 20   | 3     | 1        | 2          | 1          | false    | true
c/s        | c    | s   | 10   | 1     | 1        | 1          | 3          | true     | false
"""
given.checkpoint_shard = """
source | checkpoint | root | tag | role      | dp | mp | rank | status    | checked   | defect | offset | end | bytes
m      | c/t        | c    | t   | model     |    | 0  |      | complete  | values    |        |        |     | 9
a      | c/t        | c    | t   | optimizer | 0  | 0  | 0    | complete  | values    |        |        |     | 9
b      | c/t        | c    | t   | optimizer | 1  | 0  | 1    | truncated | structure | cut    | 5      | 5   | 5
o      | c/s        | c    | s   | optimizer | 0  | 0  | 0    | complete  | structure |        |        |     | 5
p      | c/s        | c    | s   | model_shard | 0 | 0 | 0    | complete  | structure |        |        |     | 5
"""
given.checkpoint_tensor = """
source | path | kind | nan | inf | offset | bytes
o      | p    | fp32 | 2   | 0   | 64     | 8
"""
expect = """
tag | role        | dp | rank | state      | source | offset | text                         | whole | resume | named
s   | model_shard | 0  | 0    | complete   | p      |        |                              | true  | true   | false
s   | optimizer   | 0  | 0    | not finite | o      | 64     | 2 NaN and 0 infinite elements | true  | true   | false
t   | model       |    |      | complete   | m      |        |                              | false | false  | true
t   | optimizer   | 0  | 0    | complete   | a      |        |                              | false | false  | true
t   | optimizer   | 1  | 1    | damaged    | b      | 5      | truncated: cut               | false | false  | true
t   | optimizer   | 2  | 2    | missing    |        |        | not there                    | false | false  | true
"""
---*/
WITH trusted AS (
    SELECT tag.* REPLACE (coalesce(d.doubt, tag.doubt) AS doubt)
    FROM checkpoint_tag AS tag
    LEFT JOIN checkpoint_doubt AS d ON tag.run_id = d.run_id AND tag.checkpoint = d.checkpoint
),

tags AS (
    SELECT
        run_id, checkpoint, root, tag, step, width, parallel, optimizers, models, zero_stage, complete AS whole, named,
        complete AND doubt IS NULL AND row_number() OVER (
            PARTITION BY run_id, root, complete AND doubt IS NULL ORDER BY step DESC NULLS LAST, tag DESC
        ) = 1 AS resume
    FROM trusted
),

grid AS (
    SELECT tags.*, CAST(d.i AS INTEGER) AS dp, CAST(m.i AS INTEGER) AS mp, CASE WHEN tags.parallel = 1 THEN CAST(d.i AS INTEGER) END AS rank
    FROM tags
    CROSS JOIN LATERAL (SELECT unnest(range(least(tags.width, 100000))) AS i) AS d
    CROSS JOIN LATERAL (SELECT unnest(range(least(tags.parallel, 10000))) AS i) AS m
),

wanted AS (
    SELECT run_id, checkpoint, 'optimizer' AS role, dp, mp, rank FROM grid WHERE optimizers > 0
    UNION ALL
    SELECT run_id, checkpoint, 'model_shard', dp, mp, rank FROM grid WHERE optimizers > 0 AND zero_stage = 3
    UNION ALL
    SELECT DISTINCT run_id, checkpoint, 'model', NULL, mp, NULL FROM grid WHERE optimizers > 0 AND zero_stage < 3
),

counters AS (
    SELECT run_id, checkpoint, role, mode(optimizer_step) AS usual_step
    FROM checkpoint_shard
    GROUP BY run_id, checkpoint, role
),

spoiled AS (
    SELECT run_id, source, sum(nan) AS nan, sum(inf) AS inf, min("offset") AS "offset", arg_min("offset" + bytes, "offset") AS "end"
    FROM checkpoint_tensor
    WHERE kind IN ('parameter', 'fp32', 'exp_avg', 'exp_avg_sq', 'momentum') AND (nan > 0 OR inf > 0)
    GROUP BY run_id, source
),

judged AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.role, shard.dp, shard.mp, shard.rank, shard.checked, shard.source, shard.bytes,
        CASE
            WHEN shard.status IN ('truncated', 'damaged', 'refused', 'foreign', 'empty', 'unreadable')
                THEN shard.status || coalesce(': ' || shard.defect, '')
        END AS damage,
        CASE
            WHEN shard.optimizer_step <> counters.usual_step
                THEN 'its optimizer took ' || shard.optimizer_step || ' steps, others ' || counters.usual_step
            WHEN shard.role IN ('model', 'model_shard') AND shard.global_steps <> shard.tag_step
                THEN 'it is of step ' || shard.global_steps
            WHEN
                shard.role IN ('optimizer', 'model', 'model_shard', 'layer', 'expert', 'expert_optimizer')
                AND regexp_matches(shard.stem, '(model|optim)_states$') AND shard.stem || '.pt' <> shard.file
                THEN 'it was written as ' || shard.stem || '.pt'
        END AS quarrel,
        spoiled.nan || ' NaN and ' || spoiled.inf || ' infinite elements' AS spoilt,
        coalesce(shard."offset", spoiled."offset") AS "offset", coalesce(shard."end", spoiled."end") AS "end", shard.status
    FROM checkpoint_shard AS shard
    LEFT JOIN counters
        ON shard.run_id = counters.run_id AND shard.checkpoint = counters.checkpoint AND shard.role = counters.role
    LEFT JOIN spoiled ON shard.run_id = spoiled.run_id AND shard.source = spoiled.source
    WHERE
        shard.role IN ('optimizer', 'model', 'model_shard', 'layer', 'expert', 'expert_optimizer', 'dcp')
        OR (shard.role = 'universal' AND shard.status <> 'complete')
),

cells AS (
    SELECT
        run_id, checkpoint, role, dp, mp, rank,
        CASE
            WHEN damage IS NOT NULL THEN 'damaged'
            WHEN quarrel IS NOT NULL THEN 'disagrees'
            WHEN spoilt IS NOT NULL THEN 'not finite'
            ELSE status
        END AS state,
        checked, source, bytes, "offset", "end", coalesce(damage, quarrel, spoilt) AS text
    FROM judged
    UNION ALL
    SELECT
        wanted.run_id, wanted.checkpoint, wanted.role, wanted.dp, wanted.mp, wanted.rank, 'missing',
        NULL, NULL, NULL, NULL, NULL, 'not there'
    FROM wanted
    ANTI JOIN checkpoint_shard AS shard
        ON
            wanted.run_id = shard.run_id AND wanted.checkpoint = shard.checkpoint AND wanted.role = shard.role
            AND wanted.mp = shard.mp AND wanted.dp IS NOT DISTINCT FROM shard.dp
    UNION ALL
    SELECT run_id, checkpoint, role, NULL, NULL, NULL, 'missing', NULL, source, NULL, NULL, NULL, 'not there: ' || why
    FROM checkpoint_absent
    WHERE NOT short
)

SELECT
    cells.run_id, tags.root, tags.tag, tags.step, cells.role, cells.dp, cells.mp, cells.rank, cells.state, cells.checked,
    cells.source, cells.bytes, cells."offset", cells."end", cells.text, tags.whole, tags.resume, tags.named
FROM cells
INNER JOIN tags ON cells.run_id = tags.run_id AND cells.checkpoint = tags.checkpoint
ORDER BY cells.run_id, tags.root, tags.step NULLS FIRST, tags.tag, cells.role, cells.mp, cells.dp, cells.source
