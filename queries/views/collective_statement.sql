/*---
title = "What ranks are known to have done in each process group, one row per statement"
doc   = """
Table collective_evidence with the group's identity settled: name and members, where one source knows the members. What NCCL
itself says (statements call, count and done) has the communicator's hash as its group."""
reads = ["collective_evidence", "process_group", "nccl_statement"]
[returns]
source = "VARCHAR"
record = "BIGINT"
statement = "VARCHAR"
origin = "VARCHAR"
backend = "VARCHAR"
group_key = "VARCHAR"
group_name = "VARCHAR"
group_desc = "VARCHAR"
rank = "INTEGER"
seq = "BIGINT"
after_seq = "BIGINT"
operation = "VARCHAR"
peer = "INTEGER"
signature = "VARCHAR"
pending = "BOOLEAN"
last_enqueued = "BIGINT"
last_completed = "BIGINT"
partial = "BOOLEAN"
time = "BIGINT"
timeout = "BIGINT"
frames = "VARCHAR"
[[case]]
name = "a statement without members belongs to the one group of its name"
given.process_group = """
group_name | members | members_hash
0          | [0, 1]  | aa
7          | [0]     | bb
7          | [1]     | cc
"""
given.collective_evidence = """
statement | record | group_name | members_hash | rank | partial
status    | 0      | 0          | aa           | 0    | false
status    | 1      | 0          |              | 1    | false
status    | 2      | 7          |              | 1    | false
"""
expect = """
record | group_key
0      | 0#aa
1      | 0#aa
2      | 7
"""
[[case]]
name = "what NCCL says of itself stands beside it"
given.nccl_statement = """
line | statement | origin   | group_key | rank | operation  | seq | sound
8    | count     | nccl_ras | ab        | 3    | all_reduce | 9   | true
"""
expect = """
record | statement | group_key | rank | operation  | seq | pending | partial
8      | count     | ab        | 3    | all_reduce | 9   |         | false
"""
---*/
WITH certain AS (
    SELECT group_name, min(members_hash) AS members_hash
    FROM process_group
    GROUP BY group_name
    HAVING count(DISTINCT members_hash) = 1
)

SELECT
    e.source,
    e.record,
    e.statement,
    e.origin,
    e.backend,
    e.group_name || coalesce('#' || coalesce(e.members_hash, c.members_hash), '') AS group_key,
    e.group_name,
    e.group_desc,
    e.rank,
    e.seq,
    e.after_seq,
    e.operation,
    e.peer,
    e.signature,
    e.pending,
    e.last_enqueued,
    -- A counter nobody has set yet holds anything in PyTorch 2.2 and 2.3; nothing completes before it is enqueued.
    CASE WHEN e.last_completed <= e.last_enqueued THEN e.last_completed END AS last_completed,
    e.partial,
    e.time,
    e.timeout,
    e.frames
FROM collective_evidence AS e
LEFT JOIN certain AS c ON e.group_name = c.group_name
WHERE e.rank IS NOT NULL AND e.group_name IS NOT NULL AND e.statement IN ('entry', 'status')
UNION ALL
SELECT
    source, line AS record, statement, origin, 'nccl' AS backend, group_key, group_key AS group_name, NULL AS group_desc,
    rank, seq, NULL AS after_seq, operation, NULL AS peer, signature,
    CASE WHEN statement = 'done' THEN FALSE END AS pending,
    NULL AS last_enqueued, NULL AS last_completed, NOT sound AS partial, time, NULL AS timeout, NULL AS frames
FROM nccl_statement
