/*---
title = "Which rank computes on which device"
doc   = "Devices of a host by PCI bus id (one hexadecimal number, as NCCL prints it) and number, with the global rank of the only process that NCCL's output, or the launcher's list of visible devices, puts on it."
reads = ["nccl_comm", "nccl_rank", "config", "process"]
materialize = true
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
pci = "VARCHAR"
device = "INTEGER"
rank = "INTEGER"
[[case]]
name = "from NCCL's communicators"
given.nccl_comm = """
host | pid | nvml_dev | device
n1   | 7   | 3        | 9b000
n1   | 8   | 2        | 4c000
"""
given.nccl_rank = """
host | pid | rank
n1   | 7   | 5
"""
expect = """
host | pci   | device | rank
n1   | 9b000 | 3      | 5
"""
[[case]]
name = "from the launcher's list of visible devices and its mapping of hosts"
given.config = """
kind     | key                  | value   | host
launcher | CUDA_VISIBLE_DEVICES | "2,3"   | n2
"""
given.process = """
statement | host | local_rank | rank
mapping   | n1   | 0          | 0
mapping   | n2   | 0          | 2
mapping   | n2   | 1          | 3
"""
expect = """
host | pci | device | rank
n2   |     | 2      | 2
n2   |     | 3      | 3
"""
---*/
WITH mapped AS (
    SELECT run_id, host, local_rank, min(rank) AS rank
    FROM process
    WHERE statement = 'mapping' AND host IS NOT NULL AND local_rank IS NOT NULL
    GROUP BY run_id, host, local_rank
    HAVING count(DISTINCT rank) = 1
),

visible AS (
    SELECT DISTINCT run_id, host, string_split(trim(CAST(value AS VARCHAR), '"'), ',') AS devices
    FROM config
    WHERE kind = 'launcher' AND key = 'CUDA_VISIBLE_DEVICES'
),

said AS (
    SELECT c.run_id, c.host, ltrim(lower(c.device), '0') AS pci, c.nvml_dev AS device, r.rank
    FROM nccl_comm AS c
    INNER JOIN nccl_rank AS r ON c.run_id = r.run_id AND c.host = r.host AND c.pid = r.pid
    WHERE c.device IS NOT NULL
    UNION
    SELECT m.run_id, m.host, NULL, TRY_CAST(v.devices[m.local_rank + 1] AS INTEGER), m.rank
    FROM mapped AS m
    INNER JOIN visible AS v
        ON
            m.run_id = v.run_id
            AND (v.host = m.host OR host_name(v.host) = host_name(m.host) OR (v.host IS NULL AND 1 = (SELECT count(DISTINCT o.host) FROM mapped AS o WHERE o.run_id = m.run_id)))
    WHERE TRY_CAST(v.devices[m.local_rank + 1] AS INTEGER) IS NOT NULL
)

SELECT run_id, host, pci, device, min(rank) AS rank
FROM said
GROUP BY run_id, host, pci, device
HAVING count(DISTINCT rank) = 1
ORDER BY run_id, host, pci, device
