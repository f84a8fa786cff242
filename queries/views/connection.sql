/*---
title = "Connections that NCCL reports, with the process at the other end"
doc   = """
NCCL's channel lines name ranks inside a communicator that they do not name. It is the one that the same thread finishes next,
if the ranks suit (NCCL connects while a communicator is made), else any of the process whose ranks suit (it connects at first use).
The other end is the process that holds that rank in it, on that device, on the same host where the kind says so; null unless
exactly one process suits. Lines of processes that only glued records speak of are left out.
kind: NET/IB (with GDRDMA where the device is read directly), NET/Socket or another plugin's name, P2P, SHM. `sends` is false
for the receiving end of a network connection, which both ends report."""
reads = ["nccl_channel", "nccl_member", "nccl_process"]
materialize = true
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
pid = "BIGINT"
rank = "INTEGER"
kind = "VARCHAR"
sends = "BOOLEAN"
peer_host = "VARCHAR"
peer_pid = "BIGINT"
peer_rank = "INTEGER"
connections = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "kinds of one process"
given.nccl_process = """
host | pid | rank | believed
n1   | 10  | 3    | true
"""
given.nccl_channel = """
host | pid | line | transport
n1   | 10  | 1    | NET/IB/0/GDRDMA
n1   | 10  | 2    | NET/IB/1(10)/GDRDMA/Shared
n1   | 10  | 3    | P2P/IPC/read
n1   | 10  | 4    | direct shared memory
n1   | 10  | 5    | NET/Socket/0
x    | 10  | 6    | NET/Socket/0
"""
expect = """
host | rank | kind          | connections | line
n1   | 3    | NET/IB/GDRDMA | 2           | 1
n1   | 3    | NET/Socket    | 1           | 5
n1   | 3    | P2P           | 1           | 3
n1   | 3    | SHM           | 1           | 4
"""
[[case]]
name = "the communicator that the thread finishes next: rank 1 of two of them is another process"
given.nccl_process = """
host | pid | rank | believed
n1   | 10  | 0    | true
n1   | 11  | 1    | true
n2   | 20  | 2    | true
"""
given.nccl_member = """
source | host | pid | tid | comm_rank | nranks | group_key | first | made
f      | n1   | 10  | 12  | 0         | 3      | aa        | 1     | 9
f      | n1   | 10  | 13  | 0         | 2      | bb        | 10    | 19
f      | n1   | 11  | 14  | 1         | 3      | aa        | 1     | 9
f      | n2   | 20  | 22  | 2         | 3      | aa        | 1     | 9
f      | n2   | 20  | 23  | 1         | 2      | bb        | 10    | 19
"""
given.nccl_channel = """
source | host | pid | tid | line | from_rank | to_rank | direction | transport
f      | n1   | 10  | 12  | 5    | 0         | 1       |           | P2P/IPC
f      | n1   | 10  | 13  | 15   | 0         | 1       | send      | NET/IB/0
f      | n2   | 20  | 23  | 15   | 0         | 1       | receive   | NET/IB/0
f      | n1   | 10  | 12  | 30   | 0         | 1       | send      | NET/IB/0
f      | n1   | 10  | 12  | 31   | 0         | 2       | send      | NET/IB/0
"""
expect = """
rank | kind   | sends | peer_rank | connections | line
0    | NET/IB | true  | 2         | 2           | 15
0    | NET/IB | true  |           | 1           | 30
0    | P2P    | true  | 1         | 1           | 5
2    | NET/IB | false | 0         | 1           | 15
"""
[[case]]
name = "nothing identifies the communicators of a size: device and host do, where only one process has them"
given.nccl_process = """
host | pid | rank | believed
n1   | 10  | 0    | true
n1   | 11  | 1    | true
n2   | 20  | 2    | true
n2   | 21  | 3    | true
"""
given.nccl_member = """
source | host | pid | tid | comm_rank | nranks | devices | first | made
f      | n1   | 10  | 1   | 0         | 2      | [1a000] | 9     | 9
f      | n1   | 11  | 1   | 1         | 2      | [1c000] | 9     | 9
f      | n2   | 20  | 1   | 0         | 2      | [1a000] | 9     | 9
f      | n2   | 21  | 1   | 1         | 2      | [1c000] | 9     | 9
"""
given.nccl_channel = """
source | host | pid | tid | line | from_rank | to_rank | to_device | direction | transport
f      | n1   | 10  | 1   | 5    | 0         | 1       | 1c000     |           | P2P/IPC
f      | n2   | 20  | 1   | 5    | 0         | 1       | 1c000     | send      | NET/IB/0
"""
expect = """
rank | kind   | peer_rank
0    | P2P    | 1
2    | NET/IB |
"""
---*/
WITH line AS (
    SELECT
        run_id, source, line, host, pid, tid,
        coalesce(direction, '') <> 'receive' AS sends,
        CASE WHEN direction = 'receive' THEN to_rank ELSE from_rank END AS own,
        CASE WHEN direction = 'receive' THEN from_rank ELSE to_rank END AS peer,
        CASE WHEN direction = 'receive' THEN from_device ELSE to_device END AS device,
        CASE
            WHEN transport LIKE 'NET/%' OR transport LIKE 'COLLNET/%'
                THEN
                    regexp_extract(transport, '^([^/]+/[^/]+)', 1)
                    || CASE WHEN transport LIKE '%GDRDMA%' THEN '/GDRDMA' ELSE '' END
            WHEN transport LIKE 'P2P/MNNVL%' THEN 'P2P/MNNVL'
            WHEN transport LIKE 'P2P/%' THEN 'P2P'
            WHEN transport LIKE 'SHM/%' OR transport = 'direct shared memory' THEN 'SHM'
            ELSE transport
        END AS kind
    FROM nccl_channel
),

made AS (
    SELECT run_id, source, host, pid, tid, comm_rank, nranks, first, made
    FROM nccl_member
    WHERE made IS NOT NULL
),

making AS (  -- line by line: the communicator that its thread finishes next
    SELECT
        l.run_id, l.source, l.line, l.host, l.pid, l.sends, l.own, l.peer, l.device, l.kind,
        CASE
            WHEN m.comm_rank = l.own AND l.peer < m.nranks AND (m.first <= l.line OR m.first = m.made) THEN m.first
        END AS first
    FROM line AS l
    ASOF LEFT JOIN made AS m
        ON
            l.run_id = m.run_id AND l.source = m.source AND l.host = m.host AND l.pid = m.pid AND l.tid = m.tid
            AND l.line <= m.made
),

link AS (
    SELECT
        run_id, host, pid, sends, own, peer, device, kind, source, first,
        row_number() OVER () AS number,
        count(*) AS connections,
        min(line) AS line
    FROM making
    GROUP BY run_id, host, pid, sends, own, peer, device, kind, source, first
),

inside AS (  -- the communicators that a link may belong to
    SELECT DISTINCT k.number, k.run_id, k.host, k.peer, k.device, k.kind, m.nranks, m.group_key
    FROM link AS k
    INNER JOIN nccl_member AS m
        ON
            k.run_id = m.run_id AND k.host = m.host AND k.pid = m.pid AND k.own = m.comm_rank AND k.peer < m.nranks
            AND (k.first IS NULL OR k.source = m.source AND k.first = m.first)
),

other AS (
    SELECT
        i.number,
        any_value(m.host) AS host,
        any_value(m.pid) AS pid
    FROM inside AS i
    INNER JOIN nccl_member AS m
        ON
            i.run_id = m.run_id AND i.nranks = m.nranks AND i.peer = m.comm_rank
            AND i.group_key IS NOT DISTINCT FROM m.group_key
            AND (i.kind NOT IN ('P2P', 'SHM') OR i.host = m.host)
            AND (i.device IS NULL OR coalesce(len(m.devices), 0) = 0 OR list_contains(m.devices, i.device))
    GROUP BY i.number
    HAVING count(DISTINCT m.host || ':' || m.pid) = 1
)

SELECT
    k.run_id, k.host, k.pid, p.rank, k.kind, k.sends,
    o.host AS peer_host,
    o.pid AS peer_pid,
    q.rank AS peer_rank,
    CAST(sum(k.connections) AS BIGINT) AS connections,
    arg_min(k.source, k.line) AS source,
    min(k.line) AS line
FROM link AS k
INNER JOIN nccl_process AS p ON k.run_id = p.run_id AND k.host = p.host AND k.pid = p.pid AND p.believed
LEFT JOIN other AS o ON k.number = o.number
LEFT JOIN nccl_process AS q ON k.run_id = q.run_id AND o.host = q.host AND o.pid = q.pid AND q.believed
GROUP BY k.run_id, k.host, k.pid, p.rank, k.kind, k.sends, o.host, o.pid, q.rank
ORDER BY k.run_id, k.host, p.rank, k.pid, k.kind, k.sends, o.host, o.pid
