/*---
title = "Ranks by checkpoint: whole, damaged, missing or differing"
doc   = "One row per shard that a checkpoint should hold. state: complete, damaged (also truncated, empty, refused, foreign, unreadable), missing, or disagrees (its structure is whole but it contradicts its peers). The byte range is that of the first defect."
reads = ["checkpoint_tag", "checkpoint_shard"]
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
[[case]]
name = "a whole shard, a truncated one, one that is not there"
given.checkpoint_tag = """
checkpoint | root | tag | step | width | parallel | optimizers | zero_stage
c/t        | c    | t   | 20   | 3     | 1        | 2          | 1
"""
given.checkpoint_shard = """
source | checkpoint | root | tag | role      | dp | mp | rank | status    | checked   | defect | offset | end | bytes
m      | c/t        | c    | t   | model     |    | 0  |      | complete  | values    |        |        |     | 9
a      | c/t        | c    | t   | optimizer | 0  | 0  | 0    | complete  | values    |        |        |     | 9
b      | c/t        | c    | t   | optimizer | 1  | 0  | 1    | truncated | structure | cut    | 5      | 5   | 5
"""
expect = """
tag | role      | dp | rank | state    | source | offset | text
t   | model     |    |      | complete | m      |        |
t   | optimizer | 0  | 0    | complete | a      |        |
t   | optimizer | 1  | 1    | damaged  | b      | 5      | truncated: cut
t   | optimizer | 2  |      | missing  |        |        | not there
"""
---*/
WITH grid AS (
    SELECT tag.run_id, tag.checkpoint, tag.root, tag.tag, tag.step, CAST(d.i AS INTEGER) AS dp, CAST(m.i AS INTEGER) AS mp
    FROM checkpoint_tag AS tag
    CROSS JOIN LATERAL (SELECT unnest(range(least(tag.width, 100000))) AS i) AS d
    CROSS JOIN LATERAL (SELECT unnest(range(least(tag.parallel, 10000))) AS i) AS m
    WHERE tag.optimizers > 0
),

counters AS (
    SELECT
        shard.run_id, shard.checkpoint, shard.source,
        mode(shard.optimizer_step) OVER (PARTITION BY shard.run_id, shard.checkpoint, shard.role) AS usual_step
    FROM checkpoint_shard AS shard
),

cells AS (
    SELECT
        shard.run_id, shard.root, shard.tag, coalesce(tag.step, shard.tag_step) AS step, shard.role, shard.dp, shard.mp,
        shard.rank,
        CASE
            WHEN shard.status IN ('truncated', 'damaged', 'refused', 'foreign', 'empty', 'unreadable') THEN 'damaged'
            WHEN
                shard.optimizer_step <> counters.usual_step
                OR (shard.role IN ('model', 'model_shard') AND shard.global_steps <> shard.tag_step)
                THEN 'disagrees'
            ELSE shard.status
        END AS state,
        shard.checked, shard.source, shard.bytes, shard."offset", shard."end",
        CASE
            WHEN shard.status <> 'complete' THEN shard.status || coalesce(': ' || shard.defect, '')
            WHEN shard.optimizer_step <> counters.usual_step
                THEN 'its optimizer took ' || shard.optimizer_step || ' steps, others ' || counters.usual_step
        END AS text
    FROM checkpoint_shard AS shard
    INNER JOIN checkpoint_tag AS tag ON shard.run_id = tag.run_id AND shard.checkpoint = tag.checkpoint
    LEFT JOIN counters ON shard.run_id = counters.run_id AND shard.source = counters.source
    WHERE shard.role IN ('optimizer', 'model', 'model_shard')
),

absent AS (
    SELECT grid.run_id, grid.root, grid.tag, grid.step, grid.dp, grid.mp
    FROM grid
    ANTI JOIN checkpoint_shard AS shard
        ON
            grid.run_id = shard.run_id AND grid.checkpoint = shard.checkpoint AND shard.role = 'optimizer'
            AND grid.dp = shard.dp AND grid.mp = shard.mp
)

SELECT run_id, root, tag, step, role, dp, mp, rank, state, checked, source, bytes, "offset", "end", text
FROM cells
UNION ALL
SELECT run_id, root, tag, step, 'optimizer', dp, mp, NULL, 'missing', NULL, NULL, NULL, NULL, NULL, 'not there'
FROM absent
ORDER BY run_id, root, step NULLS FIRST, tag, role, mp, dp
