/*---
title = "On which host each rank runs"
doc   = "By the launcher's mapping, its spawned processes, a table of its failures or the names of files; a rank that is said to be on two hosts has none. Hosts go by their first name."
reads = ["process", "rank_map", "source"]
materialize = true
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
rank = "INTEGER"
[[case]]
name = "two hosts, one of them by two names, and a rank that moved"
given.process = """
host    | rank
a       | 0
a.site  | 0
b       | 1
a       | 2
b       | 2
b       |
"""
expect = """
host | rank
a    | 0
b    | 1
"""
---*/
SELECT run_id, min(host) AS host, rank
FROM (
    SELECT run_id, host_name(host) AS host, rank FROM process
    UNION
    SELECT run_id, host_name(host), rank FROM rank_map
    UNION
    SELECT run_id, host_name(host), rank FROM source
) AS said
WHERE rank IS NOT NULL AND host IS NOT NULL
GROUP BY run_id, rank
HAVING count(*) = 1
ORDER BY run_id, rank
