/*---
title = "Size of every shard's weights and moments, checkpoint by checkpoint"
doc   = "Norm and root mean square of master weights and moments per optimizer shard, and how the root mean square moved since the checkpoint before (growth, 1 = unchanged). Groups of experts, which differ from rank to rank, are left out. Only where values were read."
reads = ["checkpoint_shard", "checkpoint_tensor", "checkpoint_group"]
[returns]
run_id = "VARCHAR"
root = "VARCHAR"
tag = "VARCHAR"
step = "BIGINT"
source = "VARCHAR"
dp = "INTEGER"
mp = "INTEGER"
rank = "INTEGER"
kind = "VARCHAR"
numel = "BIGINT"
l2 = "DOUBLE"
rms = "DOUBLE"
growth = "DOUBLE"
zero_stage = "BIGINT"
[[case]]
name = "two groups make one norm; the next checkpoint is twice as large"
given.checkpoint_shard = """
source | root | tag | tag_step | role      | dp | mp | rank | status
a      | c    | a   | 1        | optimizer | 0  | 0  | 0    | complete
b      | c    | b   | 2        | optimizer | 0  | 0  | 0    | complete
"""
given.checkpoint_tensor = """
source | path | kind | group | numel | l2
a      | p    | fp32 | 0     | 3     | 3
a      | q    | fp32 | 1     | 1     | 4
b      | p    | fp32 | 0     | 4     | 10
"""
expect = """
tag | step | rank | kind | numel | l2 | rms | growth
a   | 1    | 0    | fp32 | 4     | 5  | 2.5 |
b   | 2    | 0    | fp32 | 4     | 10 | 5   | 2
"""
---*/
WITH experts AS (
    SELECT run_id, source, "group"
    FROM checkpoint_group
    QUALIFY partitions < max(partitions) OVER (PARTITION BY run_id, source)
),

sums AS (
    SELECT
        shard.run_id, shard.root, shard.tag, any_value(shard.zero_stage) AS zero_stage,
        coalesce(shard.tag_step, max(shard.optimizer_step)) AS step, shard.source, shard.dp, shard.mp, shard.rank,
        tensor.kind, CAST(sum(tensor.numel) AS BIGINT) AS numel, sqrt(sum(tensor.l2 * tensor.l2)) AS l2
    FROM checkpoint_tensor AS tensor
    INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
    ANTI JOIN experts ON tensor.run_id = experts.run_id AND tensor.source = experts.source AND tensor."group" = experts."group"
    WHERE
        shard.role = 'optimizer' AND shard.status = 'complete'
        AND tensor.kind IN ('fp32', 'exp_avg', 'exp_avg_sq') AND tensor.l2 IS NOT NULL AND tensor.numel > 0
    GROUP BY shard.run_id, shard.root, shard.tag, shard.tag_step, shard.source, shard.dp, shard.mp, shard.rank, tensor.kind
)

SELECT
    run_id, root, tag, step, source, dp, mp, rank, kind, numel, l2,
    l2 / sqrt(numel) AS rms,
    (l2 / sqrt(numel)) / nullif(lag(l2 / sqrt(numel)) OVER (PARTITION BY run_id, root, dp, mp, kind ORDER BY step), 0) AS growth,
    zero_stage
FROM sums
ORDER BY run_id, root, step, mp, dp, kind
