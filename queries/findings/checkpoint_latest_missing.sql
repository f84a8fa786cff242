/*---
title    = "The tag file points to a checkpoint that is not there"
doc      = "With such a latest file, DeepSpeed either fails or starts from scratch."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 4
reads    = ["checkpoint_file", "checkpoint_shard", "checkpoint_tag"]
summary  = "{source} points to {points_to}, which is not there"
[returns]
source = "VARCHAR"
points_to = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "points nowhere"
given.checkpoint_file = """
source   | container | points_to
c/latest | tag       | global_step30
"""
given.checkpoint_shard = """
source | root | tag           | role
a      | c    | global_step20 | optimizer
"""
given.checkpoint_tag = """
root | tag           | step | complete
c    | global_step20 | 20   | true
"""
expect = """
source   | points_to     | text
c/latest | global_step30 | c/latest names global_step30; the newest complete checkpoint there is global_step20
"""
[[case]]
name = "points to what is there"
given.checkpoint_file = """
source   | container | points_to
c/latest | tag       | global_step20
latest   | tag       | x
"""
given.checkpoint_shard = """
source | root | tag           | role
a      | c    | global_step20 | optimizer
"""
expect = "source | points_to"
---*/
WITH pointers AS (
    SELECT run_id, source, points_to, coalesce(nullif(regexp_extract(source, '^(.*)/[^/]*$', 1), ''), '.') AS root
    FROM checkpoint_file
    WHERE container = 'tag' AND points_to IS NOT NULL
),

-- Only where checkpoints lie beside it: runs are often copied without their checkpoints.
neighbours AS (
    SELECT DISTINCT run_id, root FROM checkpoint_shard WHERE role <> 'tag'
),

newest AS (
    SELECT run_id, root, arg_max(tag, step) AS tag FROM checkpoint_tag WHERE complete GROUP BY run_id, root
)

SELECT
    pointers.source, pointers.points_to,
    pointers.source || ' names ' || pointers.points_to || '; '
    || coalesce('the newest complete checkpoint there is ' || newest.tag, 'there is no complete checkpoint there') AS text
FROM pointers
ANTI JOIN checkpoint_shard AS shard
    ON pointers.run_id = shard.run_id AND pointers.root = shard.root AND pointers.points_to = shard.tag
LEFT JOIN newest ON pointers.run_id = newest.run_id AND pointers.root = newest.root
INNER JOIN neighbours ON pointers.run_id = neighbours.run_id AND pointers.root = neighbours.root
ORDER BY pointers.source
