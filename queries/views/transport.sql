/*---
title = "Over what each process talks to its peers"
doc   = "NCCL's channel lines, one row per process and kind of transport: NET/IB (with GDRDMA where the device is read directly), NET/Socket or another plugin's name, P2P, SHM. Processes that only glued records speak of are left out."
reads = ["nccl_channel", "nccl_process"]
materialize = true
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
pid = "BIGINT"
rank = "INTEGER"
kind = "VARCHAR"
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
---*/
WITH kinds AS (
    SELECT
        run_id,
        host,
        pid,
        source,
        line,
        CASE
            WHEN transport LIKE 'NET/%' OR transport LIKE 'COLLNET/%'
                THEN
                    regexp_extract(transport, '^([^/]+/[^/]+)', 1)
                    || CASE WHEN transport LIKE '%GDRDMA%' THEN '/GDRDMA' ELSE '' END
            WHEN transport LIKE 'P2P/%' THEN 'P2P'
            WHEN transport LIKE 'SHM/%' OR transport = 'direct shared memory' THEN 'SHM'
            ELSE transport
        END AS kind
    FROM nccl_channel
)

SELECT
    k.run_id,
    k.host,
    k.pid,
    p.rank,
    k.kind,
    count(*) AS connections,
    arg_min(k.source, k.line) AS source,
    min(k.line) AS line
FROM kinds AS k
INNER JOIN nccl_process AS p ON k.run_id = p.run_id AND k.host = p.host AND k.pid = p.pid AND p.believed
GROUP BY k.run_id, k.host, k.pid, p.rank, k.kind
ORDER BY k.run_id, k.host, p.rank, k.pid, k.kind
