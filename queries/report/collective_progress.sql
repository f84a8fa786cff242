/*---
title = "How far every rank got in each process group"
doc = """Number of the last collective that a rank is known to have enqueued and to have completed, for groups whose ranks
disagree or did not finish. A rank that stands behind the others is the one that they wait for."""
reads = ["rank_in_group", "group_member"]
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
---*/
WITH names AS (SELECT group_key, min(group_name) AS group_name FROM group_member GROUP BY group_key),

open_groups AS (
    SELECT group_key
    FROM rank_in_group
    GROUP BY group_key
    HAVING max(enqueued) > min(enqueued) OR max(enqueued) > min(completed)
)

SELECT
    coalesce(names.group_name, rank_in_group.group_key) AS group_name,
    rank_in_group.rank,
    rank_in_group.enqueued,
    rank_in_group.completed
FROM rank_in_group
INNER JOIN open_groups ON rank_in_group.group_key = open_groups.group_key
LEFT JOIN names ON rank_in_group.group_key = names.group_key
ORDER BY group_name, rank_in_group.rank
LIMIT $most
