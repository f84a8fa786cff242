/*---
title = "What NCCL itself says of each rank's collectives: calls in its log, counts of RAS, records of the Inspector"
doc   = """
call: a call that NCCL logged, with its own number per communicator and rank, in the order of lines (opCount is no
such number); the host has made it, nothing says that it ended. count: how many of a kind a rank has made when RAS asked.
done: one that ended; the Inspector leaves out small ones and drops what its ring cannot hold. `sound` is false where
records of the file are glued together or the process wrote into several files, so that some may be lost; `answer` numbers RAS answers. Communicators are those of nccl_member, known by their hash, or as it says there."""
reads = ["nccl_call", "nccl_member", "nccl_comm", "nccl_channel", "nccl_rank", "collective_evidence"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
answer = "BIGINT"
time = "BIGINT"
statement = "VARCHAR"
origin = "VARCHAR"
group_key = "VARCHAR"
size = "INTEGER"
rank = "INTEGER"
operation = "VARCHAR"
seq = "BIGINT"
signature = "VARCHAR"
hint = "VARCHAR"
sound = "BOOLEAN"
[[case]]
name = "calls are numbered in line order; a pointer used again is another communicator, a destroyed one none"
given.nccl_rank = """
host | pid | rank
n1   | 10  | 3
"""
given.nccl_member = """
source | host | pid | comm | first | made | ended | group_key | nranks
f      | n1   | 10  | 0xa  | 1     | 2    | 5     | c0        | 8
f      | n1   | 10  | 0xa  | 7     | 7    |       | d         | 4
"""
given.nccl_call = """
source | host | pid | comm | line | part | function      | count | datatype | reduction | root | op_count
f      | n1   | 10  | 0xa  | 3    | 0    | AllReduce     | 8     | 7        | 0         | 0    | 0
f      | n1   | 10  | 0xa  | 4    | 0    | ReduceScatter | 4     | 7        | 9         | 0    | 0
f      | n1   | 10  | 0xa  | 6    | 0    | AllReduce     | 8     | 7        | 0         | 0    | 0
f      | n1   | 10  | 0xa  | 8    | 0    | Broadcast     | 2     | 9        | 0         | 1    | 1f
f      | n1   | 10  | 0xa  | 9    | 0    | Send          | 2     | 9        | 0         | 1    | 1f
"""
expect = """
line | statement | group_key | rank | operation      | seq | signature                   | size | hint | sound
3    | call      | c0        | 3    | all_reduce     | 1   | all_reduce 8 7 0 0          | 8    | 0    | true
4    | call      | c0        | 3    | reduce_scatter | 2   | reduce_scatter 4 7 user 0   | 8    | 0    | true
8    | call      | d         | 3    | broadcast      | 1   | broadcast 2 9 0 1           | 4    | 1f   | true
"""
[[case]]
name = "RAS and the Inspector, and a file with glued records"
given.nccl_rank = """
host | pid | rank
n1   | 10  | 3
"""
given.nccl_member = """
source | host | pid | comm | first | group_key | nranks
f      | n1   | 10  | 0xa  | 2     | ab        | 8
"""
given.nccl_comm = """
source | host | pid | comm | line | part | statement     | comm_id | nranks | comm_rank
r      | n1   | 10  |      | 1    | 0    | listed        | 0x0ab   | 8      | 3
f      | n1   | 10  | 0xa  | 2    | 1    | init_complete | 0xab    | 8      | 3
"""
given.nccl_call = """
source | host | pid | comm | line | part | function  | count | datatype | reduction | root
f      | n1   | 10  | 0xa  | 3    | 0    | AllReduce | 8     | 7        | 0         | 0
"""
given.collective_evidence = """
source | line | statement | origin         | group_name | host | pid | operation | seq | peer
r      | 1    | count     | nccl_ras       | 0xab       | n1   | 10  | AllReduce | 6650 |
i      | 4    | done      | nccl_inspector | 0xab       | n1   | 10  | AllReduce | 6649 |
i      | 5    | done      | nccl_inspector | 0xab       | n1   | 10  | Send      | 3    | 1
"""
expect = """
source | statement | group_key | size | rank | operation  | seq  | answer | sound
f      | call      | ab        | 8    | 3    | all_reduce | 1    |        | false
i      | done      | ab        | 8    | 3    | all_reduce | 6649 |        | true
r      | count     | ab        | 8    | 3    | all_reduce | 6650 | 1      | true
"""
---*/
WITH glued AS (
    SELECT run_id, source FROM nccl_call WHERE part > 0
    UNION
    SELECT run_id, source FROM nccl_comm WHERE part > 0 AND statement <> 'listed'
    UNION
    SELECT run_id, source FROM nccl_channel WHERE part > 0
),

scattered AS (  -- processes whose calls are spread, or told twice, over several files
    SELECT run_id, host, pid
    FROM nccl_call
    GROUP BY run_id, host, pid
    HAVING count(DISTINCT source) > 1
),

placed AS (
    SELECT
        c.run_id, c.source, c.host, c.pid, c.line, c.part, c.time, c.op_count, c.count, c.datatype, c.root,
        CASE WHEN c.reduction >= 5 THEN 'user' ELSE CAST(c.reduction AS VARCHAR) END AS reduction,
        lower(regexp_replace(c.function, '([a-z])([A-Z])', '\1_\2', 'g')) AS operation,
        m.group_key, m.nranks
    FROM nccl_call AS c
    ASOF INNER JOIN nccl_member AS m
        ON
            c.run_id = m.run_id AND c.source = m.source AND c.host = m.host AND c.pid = m.pid AND c.comm = m.comm
            AND c.line >= m.first
    WHERE m.group_key IS NOT NULL AND coalesce(c.line < m.ended, TRUE) AND c.function NOT IN ('Send', 'Recv')
),

sizes AS (
    SELECT run_id, ltrim(lower(comm_id), '0x') AS group_key, max(nranks) AS nranks
    FROM nccl_comm
    WHERE statement = 'listed'
    GROUP BY run_id, ltrim(lower(comm_id), '0x')
),

said AS (
    SELECT
        run_id, source, line, CAST(NULL AS BIGINT) AS answer, time, 'call' AS statement, 'nccl_log' AS origin, group_key, nranks, host, pid,
        operation,
        row_number() OVER (PARTITION BY run_id, group_key, host, pid, source ORDER BY line, part) AS seq,
        concat_ws(' ', operation, count, datatype, reduction, root) AS signature,
        op_count AS hint
    FROM placed
    UNION ALL
    SELECT
        e.run_id, e.source, e.line, CASE WHEN e.statement = 'count' THEN e.line END AS answer, e.time, e.statement, e.origin,
        ltrim(lower(e.group_name), '0x') AS group_key, s.nranks, e.host, e.pid,
        lower(regexp_replace(e.operation, '([a-z])([A-Z])', '\1_\2', 'g')) AS operation,
        e.seq, NULL AS signature, NULL AS hint
    FROM collective_evidence AS e
    LEFT JOIN sizes AS s ON e.run_id = s.run_id AND ltrim(lower(e.group_name), '0x') = s.group_key
    WHERE e.statement IN ('count', 'done') AND e.peer IS NULL
)

SELECT
    d.run_id, d.source, d.line, d.answer, d.time, d.statement, d.origin, d.group_key,
    d.nranks AS size,
    r.rank, d.operation, d.seq, d.signature, d.hint,
    g.source IS NULL AND (f.pid IS NULL OR d.statement <> 'call') AS sound
FROM said AS d
INNER JOIN nccl_rank AS r ON d.run_id = r.run_id AND d.host = r.host AND d.pid = r.pid
LEFT JOIN glued AS g ON d.run_id = g.run_id AND d.source = g.source
LEFT JOIN scattered AS f ON d.run_id = f.run_id AND d.host = f.host AND d.pid = f.pid
ORDER BY d.source, d.line, r.rank
