/*---
title = "How far every rank got in each process group"
doc = """Number of the last collective that a rank is known to have enqueued and to have completed, for groups whose ranks
disagree or did not finish; communicators whose ranks disagree by NCCL's own log, RAS or Inspector follow. A rank that stands behind the others is the one that they wait for."""
reads = ["rank_in_group", "group_member", "nccl_progress"]
[params]
most = { type = "INTEGER", default = 2048, doc = "Rows at most." }
[returns]
group_name = "VARCHAR"
rank = "INTEGER"
enqueued = "BIGINT"
completed = "BIGINT"
[[case]]
name = "a group in which all is done is left out"
given.rank_in_group = """
group_key | rank | enqueued | completed
a         | 0    | 68       | 67
a         | 1    | 67       | 67
b         | 0    | 5        | 5
b         | 1    | 5        | 5
"""
given.group_member = """
group_key | group_name | rank
a         | default    | 0
"""
expect = """
group_name | rank | enqueued | completed
default    | 0    | 68       | 67
default    | 1    | 67       | 67
"""
[[case]]
name = "RAS counts of a communicator whose ranks stand apart"
given.nccl_progress = """
origin   | group_key | operation  | rank | called
nccl_ras | ab        | all_reduce | 0    | 9
nccl_ras | ab        | all_reduce | 1    | 8
nccl_ras | ab        | broadcast  | 0    | 1
nccl_ras | ab        | broadcast  | 1    | 1
"""
expect = """
group_name               | rank | enqueued
ab all_reduce (nccl_ras) | 0    | 9
ab all_reduce (nccl_ras) | 1    | 8
"""
---*/
WITH names AS (SELECT group_key, min(group_name) AS group_name FROM group_member GROUP BY group_key),

open_groups AS (
    SELECT group_key
    FROM rank_in_group
    GROUP BY group_key
    HAVING max(enqueued) > min(enqueued) OR max(enqueued) > min(completed)
),

apart AS (
    SELECT origin, group_key, operation
    FROM nccl_progress
    GROUP BY origin, group_key, operation
    HAVING max(called) > min(called) OR max(completed) > min(completed)
),

both_kinds AS (
    SELECT
        0 AS place, coalesce(names.group_name, rank_in_group.group_key) AS group_name,
        rank_in_group.rank, rank_in_group.enqueued, rank_in_group.completed
    FROM rank_in_group
    INNER JOIN open_groups ON rank_in_group.group_key = open_groups.group_key
    LEFT JOIN names ON rank_in_group.group_key = names.group_key
    UNION ALL
    SELECT 1, concat_ws(' ', p.group_key, p.operation, '(' || p.origin || ')'), p.rank, p.called, p.completed
    FROM nccl_progress AS p
    SEMI JOIN apart AS a
        ON p.origin = a.origin AND p.group_key = a.group_key AND p.operation IS NOT DISTINCT FROM a.operation
)

SELECT group_name, rank, enqueued, completed
FROM both_kinds
ORDER BY place, group_name, rank
LIMIT $most
