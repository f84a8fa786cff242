/*---
title    = "Files of one checkpoint were not written together"
doc      = "Modification times of one checkpoint's shards span the time at which another checkpoint of the folder was written: the usual trace of a tag that was written twice, or of a file that was put there later. Copying can change these times, so it is only a hint."
severity = "note"
reads    = ["checkpoint_shard"]
summary  = "files of checkpoint {tag} are from different times: {text}"
[returns]
tag = "VARCHAR"
source = "VARCHAR"
time = "BIGINT"
text = "VARCHAR"
[[case]]
name = "one shard is older than the checkpoint before it"
given.checkpoint_shard = """
source | checkpoint | root | tag | tag_step | role      | modified
a      | c/a        | c    | a   | 10       | optimizer | 100000000000
b      | c/a        | c    | a   | 10       | optimizer | 101000000000
d      | c/b        | c    | b   | 20       | optimizer | 200000000000
e      | c/b        | c    | b   | 20       | optimizer | 90000000000
"""
expect = """
tag | source | text
b   | e      | e is older than every file of a, which comes before it
"""
[[case]]
name = "in order"
given.checkpoint_shard = """
source | checkpoint | root | tag | tag_step | role      | modified
a      | c/a        | c    | a   | 10       | optimizer | 100000000000
b      | c/a        | c    | a   | 10       | optimizer | 101000000000
d      | c/b        | c    | b   | 20       | optimizer | 200000000000
e      | c/b        | c    | b   | 20       | optimizer | 201000000000
"""
expect = "tag | source"
---*/
WITH windows AS (
    SELECT run_id, root, tag, tag_step, min(modified) AS first, max(modified) AS last
    FROM checkpoint_shard
    WHERE role IN ('optimizer', 'model', 'model_shard') AND modified IS NOT NULL AND tag_step IS NOT NULL
    GROUP BY run_id, root, tag, tag_step
)

SELECT
    shard.tag, shard.source, shard.modified AS time,
    shard.source || ' is older than every file of ' || arg_max(earlier.tag, earlier.tag_step) || ', which comes before it' AS text
FROM checkpoint_shard AS shard
INNER JOIN windows AS own ON shard.run_id = own.run_id AND shard.root = own.root AND shard.tag = own.tag
INNER JOIN windows AS earlier
    ON
        shard.run_id = earlier.run_id AND shard.root = earlier.root AND shard.tag_step > earlier.tag_step
        AND shard.modified < earlier.first - 1000000000 AND own.last > earlier.last
WHERE shard.role IN ('optimizer', 'model', 'model_shard')
GROUP BY shard.tag, shard.source, shard.modified
ORDER BY shard.source
