/*---
title = "Processes that NCCL's output speaks of, and their global ranks"
doc   = """
A record that is glued to another makes up hosts and processes that never were. One is believed where it made a
communicator in a record of its own, or where at least two records at the start of a line speak of it. The global rank
is what the line's lead-in states, else the rank in the largest communicator, if that is as large as the largest of all.
RAS answers and Inspector records (statement listed) are whole by themselves."""
reads = ["nccl_comm", "nccl_channel", "nccl_call"]
materialize = true
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
pid = "BIGINT"
rank = "INTEGER"
nranks = "INTEGER"
records = "BIGINT"
believed = "BOOLEAN"
[[case]]
name = "two processes, and one made up by a glued record"
given.nccl_comm = """
host | pid | line | part | statement     | comm_rank | nranks
n1   | 10  | 1    | 0    | init_complete | 0         | 2
n1   | 10  | 5    | 0    | init_complete | 0         | 1
n2   | 11  | 2    | 0    | init_complete | 1         | 2
"""
given.nccl_channel = """
host   | pid | line | part
xyzn1  | 10  | 9    | 1
n2     | 11  | 8    | 0
"""
expect = """
host  | pid | rank | nranks | records | believed
n1    | 10  | 0    | 2      | 2       | true
n2    | 11  | 1    | 2      | 2       | true
xyzn1 | 10  |      |        | 1       | false
"""
---*/
WITH said AS (
    SELECT
        run_id, host, pid, rank, CASE WHEN statement <> 'listed' THEN part ELSE 0 END AS part, comm_rank, nranks,
        statement LIKE 'init%' OR statement = 'listed' AS made
    FROM nccl_comm
    UNION ALL
    SELECT run_id, host, pid, rank, part, NULL AS comm_rank, NULL AS nranks, FALSE AS made FROM nccl_channel
    UNION ALL
    SELECT run_id, host, pid, rank, part, NULL AS comm_rank, NULL AS nranks, FALSE AS made FROM nccl_call
),

process AS (
    SELECT
        run_id,
        host,
        pid,
        max(rank) AS stated,
        arg_max(comm_rank, nranks) AS comm_rank,
        max(nranks) AS nranks,
        count(*) AS records,
        bool_or(made AND part = 0) OR count(*) FILTER (WHERE part = 0) >= 2 AS believed
    FROM said
    WHERE host IS NOT NULL AND pid IS NOT NULL
    GROUP BY run_id, host, pid
)

SELECT
    run_id,
    host,
    pid,
    coalesce(stated, CASE WHEN nranks = max(nranks) OVER (PARTITION BY run_id) THEN comm_rank END) AS rank,
    nranks,
    records,
    believed
FROM process
ORDER BY run_id, host, pid
