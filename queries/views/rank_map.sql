/*---
title = "Global rank of everybody who wrote or is spoken of"
doc   = "One row per source, host, local rank and task that any record carries, with the global rank that all evidence of the run gives it. Asked in this order: the same file names it (prefix); launcher, torchrun or file said so for that host and local rank (host); the run has one node, because the world is as large as the number of local ranks (node); each mpirun or srun label is one process of the stated world (task). Where the evidence disagrees or does not reach, the rank is NULL: a wrong rank is worse than none."
reads = ["process", "source", "trace"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
host = "VARCHAR"
local_rank = "INTEGER"
task = "INTEGER"
rank = "INTEGER"
origin = "VARCHAR"
[[case]]
name = "one node: local ranks are global ranks"
given.process = """
source | statement | rank | local_rank | world_size
a      | world     |      |            | 2
f0     | prefix    |      | 0          |
f1     | prefix    |      | 1          |
"""
expect = """
source | local_rank | rank | origin
f0     | 0          | 0    | node
f1     | 1          | 1    | node
"""
[[case]]
name = "a profiler trace states the world"
given.process = """
source | statement | local_rank
f0     | prefix    | 0
f1     | prefix    | 1
"""
given.trace = """
source | rank | world_size
t      | 0    | 2
"""
expect = """
source | local_rank | rank | origin
f0     | 0          | 0    | node
f1     | 1          | 1    | node
"""
[[case]]
name = "a node of two, and nothing says which: no rank"
given.process = """
source | statement | rank | local_rank | world_size
a      | world     |      |            | 4
f0     | prefix    |      | 0          |
f1     | prefix    |      | 1          |
"""
expect = """
source | local_rank | rank | origin
f0     | 0          |      |
f1     | 1          |      |
"""
[[case]]
name = "the launcher's mapping of hosts"
given.process = """
source | statement | host | rank | local_rank | world_size
a      | mapping   | n1   | 0    | 0          |
a      | mapping   | n2   | 1    | 0          |
x      | prefix    | n2   |      | 0          |
"""
expect = """
source | host | local_rank | rank | origin
x      | n2   | 0          | 1    | host
"""
[[case]]
name = "pdsh cuts the domain off; two hosts of one first name are not told apart"
given.process = """
source | statement | host      | rank | local_rank | world_size
a      | mapping   | n1.a.net  | 0    | 0          |
a      | mapping   | n2.a.net  | 1    | 0          |
a      | mapping   | n3.a.net  | 2    | 0          |
a      | mapping   | n3.b.net  | 3    | 0          |
a      | mapping   | 10.0.0.1  | 4    | 0          |
a      | mapping   | 10.0.0.2  | 5    | 0          |
x      | prefix    | n2        |      | 0          |
y      | prefix    | n3        |      | 0          |
z      | prefix    | 10.0.0.2  |      | 0          |
"""
expect = """
source | host     | local_rank | rank | origin
x      | n2       | 0          | 1    | host
y      | n3       | 0          |      |
z      | 10.0.0.2 | 0          | 5    | host
"""
[[case]]
name = "the file itself says so: a traceback of its writer carries the global rank"
given.process = """
source | statement | host | rank | local_rank | world_size
f0     | prefix    |      |      | 0          |
f0     | prefix    |      | 4    | 0          |
f1     | prefix    |      |      | 0          |
"""
expect = """
source | local_rank | rank | origin
f0     | 0          | 4    | prefix
f1     | 0          |      |
"""
[[case]]
name = "srun labels of a world of their number are ranks; labels of nodes are not"
given.process = """
run_id | source | statement | task | world_size
a      | f      | world     |      | 2
a      | f      | prefix    | 0    |
a      | f      | prefix    | 1    |
b      | f      | world     |      | 8
b      | f      | prefix    | 0    |
b      | f      | prefix    | 1    |
"""
expect = """
run_id | source | task | rank | origin
a      | f      | 0    | 0    | task
a      | f      | 1    | 1    | task
b      | f      | 0    |      |
b      | f      | 1    |      |
"""
---*/
WITH writers AS (
    SELECT DISTINCT run_id, source, host, local_rank, task
    FROM process
    WHERE statement IN ('prefix', 'mpi') AND rank IS NULL
    UNION
    SELECT DISTINCT run_id, source, host, local_rank, NULL FROM source WHERE rank IS NULL AND local_rank IS NOT NULL
    UNION
    SELECT DISTINCT run_id, source, host, local_rank, NULL FROM process
    WHERE statement = 'spawn' AND rank IS NULL AND local_rank IS NOT NULL
),

pairs AS (
    SELECT run_id, source, statement, host, local_rank, task, rank
    FROM process
    WHERE rank IS NOT NULL AND (local_rank IS NOT NULL OR task IS NOT NULL)
),

by_file AS (
    SELECT run_id, source, host, local_rank, task, min(rank) AS rank
    FROM pairs
    WHERE statement IN ('prefix', 'mpi')
    GROUP BY ALL
    HAVING count(DISTINCT rank) = 1
),

by_host AS (
    SELECT run_id, coalesce(host_name(host), host) AS host, local_rank, min(rank) AS rank
    FROM pairs
    WHERE host IS NOT NULL AND local_rank IS NOT NULL
    GROUP BY ALL
    HAVING count(DISTINCT rank) = 1
),

traced AS (
    SELECT run_id, max(world_size) AS size FROM trace GROUP BY run_id
),

worlds AS (
    SELECT
        run_id,
        max(world_size) AS size,
        count(DISTINCT local_rank) AS locals,
        count(DISTINCT task) AS tasks,
        max(task) AS last_task,
        count(DISTINCT host) FILTER (WHERE statement = 'mapping') AS mapped_hosts,
        bool_and(rank = local_rank) FILTER (WHERE rank IS NOT NULL AND local_rank IS NOT NULL) AS local_is_global,
        bool_and(rank = task) FILTER (WHERE rank IS NOT NULL AND task IS NOT NULL) AS task_is_rank,
        bool_or(statement = 'mpi') AS mpi
    FROM process
    GROUP BY run_id
),

answers AS (
    SELECT
        w.run_id, w.source, w.host, w.local_rank, w.task,
        f.rank AS file_rank,
        h.rank AS host_rank,
        CASE
            WHEN
                w.local_rank IS NOT NULL AND coalesce(d.local_is_global, TRUE)
                AND (d.mapped_hosts = 1 OR coalesce(d.size, x.size) = d.locals)
                THEN w.local_rank
        END AS node_rank,
        CASE
            WHEN
                w.task IS NOT NULL AND d.tasks = d.last_task + 1 AND coalesce(d.task_is_rank, TRUE)
                AND (coalesce(d.size, x.size) = d.tasks OR (coalesce(d.size, x.size) IS NULL AND d.mpi AND d.tasks > 1))
                THEN w.task
        END AS task_rank
    FROM writers AS w
    LEFT JOIN by_file AS f
        ON
            w.run_id = f.run_id AND w.source = f.source AND w.host IS NOT DISTINCT FROM f.host
            AND w.local_rank IS NOT DISTINCT FROM f.local_rank AND w.task IS NOT DISTINCT FROM f.task
    LEFT JOIN by_host AS h ON w.run_id = h.run_id AND coalesce(host_name(w.host), w.host) = h.host AND w.local_rank = h.local_rank
    LEFT JOIN worlds AS d ON w.run_id = d.run_id
    LEFT JOIN traced AS x ON w.run_id = x.run_id
)

SELECT
    run_id, source, host, local_rank, task,
    CASE
        WHEN local_rank IS NULL AND task IS NULL THEN NULL
        ELSE coalesce(file_rank, host_rank, node_rank, task_rank)
    END AS rank,
    CASE
        WHEN local_rank IS NULL AND task IS NULL THEN NULL
        WHEN file_rank IS NOT NULL THEN 'prefix'
        WHEN host_rank IS NOT NULL THEN 'host'
        WHEN node_rank IS NOT NULL THEN 'node'
        WHEN task_rank IS NOT NULL THEN 'task'
    END AS origin
FROM answers
ORDER BY run_id, source, host, local_rank, task
