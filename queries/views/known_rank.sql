/*---
title = "Every global rank that any source speaks of"
doc   = "Ranks of processes, members of process groups, and 0 to n - 1 where a source states a world, or a communicator, of n."
reads = ["process", "process_group", "collective_evidence", "nccl_comm"]
materialize = true
[returns]
rank = "INTEGER"
[[case]]
name = "a stated world counts in full"
given.process = """
statement | rank | world_size
world     |      | 3
spawn     | 1    |
"""
given.process_group = """
group_name | members | members_hash
0          | [0, 4]  | aa
"""
expect = """
rank
0
1
2
4
"""
[[case]]
name = "nobody states a world"
given.process_group = """
group_name | members | members_hash
0          | [0, 1]  | aa
"""
expect = """
rank
0
1
"""
---*/
SELECT DISTINCT rank FROM (
    SELECT rank FROM process
    UNION ALL
    SELECT unnest(range(max(world_size)))::INTEGER AS rank
    FROM process
    WHERE world_size BETWEEN 1 AND 1000000  -- what is larger was misread
    UNION ALL
    SELECT unnest(members) AS rank FROM process_group
    UNION ALL
    SELECT rank FROM collective_evidence
    UNION ALL
    SELECT unnest(range(max(nranks)))::INTEGER AS rank
    FROM nccl_comm
    WHERE nranks BETWEEN 1 AND 1000000
) AS said
WHERE rank >= 0
ORDER BY rank
