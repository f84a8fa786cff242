/*---
title = "Global rank of the processes that NCCL's output, RAS or the Inspector speak of"
doc   = "Only where nothing speaks against it: one process per rank, one rank per process, and a largest communicator of all ranks that are known of."
reads = ["nccl_process", "nccl_comm", "known_rank"]
materialize = true
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
pid = "BIGINT"
rank = "INTEGER"
[[case]]
name = "one rank is claimed twice, one process drives two devices"
given.known_rank = """
rank
0
1
2
3
"""
given.nccl_process = """
host | pid | rank | nranks | believed
a    | 1   | 0    | 4      | true
a    | 2   | 1    | 4      | true
b    | 3   | 2    | 4      | true
b    | 4   | 2    | 4      | true
c    | 5   | 3    | 4      | true
"""
given.nccl_comm = """
host | pid | comm_id | comm_rank
c    | 5   | 0x9     | 3
c    | 5   | 0x9     | 2
"""
expect = """
host | pid | rank
a    | 1   | 0
a    | 2   | 1
"""
[[case]]
name = "the largest communicator seen is not the whole job"
given.known_rank = """
rank
0
1
2
"""
given.nccl_process = """
host | pid | rank | nranks | believed
a    | 1   | 0    | 2      | true
"""
expect = "rank"
---*/
WITH shared AS (  -- processes of more than one rank
    SELECT run_id, host, pid
    FROM nccl_comm
    WHERE comm_id IS NOT NULL
    GROUP BY run_id, host, pid
    HAVING count(DISTINCT concat(comm_id, ' ', comm_rank)) > count(DISTINCT comm_id)
)

SELECT p.run_id, p.host, p.pid, p.rank
FROM nccl_process AS p
ANTI JOIN shared AS s ON p.run_id = s.run_id AND p.host = s.host AND p.pid = s.pid
WHERE p.believed AND p.rank IS NOT NULL AND p.nranks >= (SELECT count(*) FROM known_rank)
QUALIFY count(*) OVER (PARTITION BY p.run_id, p.rank) = 1
ORDER BY p.run_id, p.rank
