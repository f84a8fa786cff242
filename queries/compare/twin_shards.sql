/*---
title = "Shards of two runs, bit by bit, checkpoint by checkpoint"
doc   = "For every checkpoint that both runs hold: each shard's tensors compared by the checksum of their bytes. Says nothing about whether the runs should be equal: see twin_divergence."
reads = ["checkpoint_shard", "checkpoint_tensor"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
tag = "VARCHAR"
step = "BIGINT"
role = "VARCHAR"
dp = "INTEGER"
mp = "INTEGER"
rank = "INTEGER"
tensors = "BIGINT"
differing = "BIGINT"
paths = "VARCHAR[]"
before_source = "VARCHAR"
after_source = "VARCHAR"
[[case]]
name = "rank 1's master weights differ, its moments do not"
given.checkpoint_shard = """
run_id | source | tag | tag_step | role      | dp | mp | rank
before | a/0    | t   | 20       | optimizer | 0  | 0  | 0
before | a/1    | t   | 20       | optimizer | 1  | 0  | 1
after  | b/0    | t   | 20       | optimizer | 0  | 0  | 0
after  | b/1    | t   | 20       | optimizer | 1  | 0  | 1
after  | b/2    | u   | 40       | optimizer | 1  | 0  | 1
"""
given.checkpoint_tensor = """
run_id | source | path | kind    | numel | crc32
before | a/0    | p    | fp32    | 4     | 1
before | a/1    | p    | fp32    | 4     | 2
before | a/1    | q    | exp_avg | 4     | 3
after  | b/0    | p    | fp32    | 4     | 1
after  | b/1    | p    | fp32    | 4     | 9
after  | b/1    | q    | exp_avg | 4     | 3
after  | b/2    | q    | exp_avg | 4     | 3
"""
expect = """
tag | step | role      | rank | tensors | differing | paths
t   | 20   | optimizer | 0    | 1       | 0         | []
t   | 20   | optimizer | 1    | 2       | 1         | ['p']
"""
---*/
WITH pairs AS (
    SELECT
        b.tag, b.tag_step AS step, b.role, b.dp, b.mp, b.rank, b.source AS before_source, a.source AS after_source,
        x.path, x.numel <> y.numel OR x.crc32 <> y.crc32 AS differs
    FROM checkpoint_shard AS b
    INNER JOIN checkpoint_shard AS a
        ON
            b.tag = a.tag AND b.role = a.role AND b.dp IS NOT DISTINCT FROM a.dp AND b.mp IS NOT DISTINCT FROM a.mp
            AND (b.role IN ('optimizer', 'model', 'model_shard') OR b.file = a.file)
    INNER JOIN checkpoint_tensor AS x ON b.run_id = x.run_id AND b.source = x.source
    INNER JOIN checkpoint_tensor AS y ON a.run_id = y.run_id AND a.source = y.source AND x.path = y.path
    WHERE
        b.run_id = $before AND a.run_id = $after
        AND ((x.crc32 IS NOT NULL AND y.crc32 IS NOT NULL) OR x.numel <> y.numel)
)

SELECT
    tag, step, role, dp, mp, rank, count(*) AS tensors, count(*) FILTER (WHERE differs) AS differing,
    coalesce(list(path ORDER BY path) FILTER (WHERE differs), CAST([] AS VARCHAR[])) AS paths,
    before_source, after_source
FROM pairs
GROUP BY tag, step, role, dp, mp, rank, before_source, after_source
ORDER BY step, tag, role, mp, dp
