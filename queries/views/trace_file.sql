/*---
title = "Traces, with the rank and host that all evidence of the run gives them"
doc = """
One row per trace. A trace that does not state its rank gets the only rank that all process groups listed in it have in
common (a process lists the groups it belongs to), else the rank that the logs give its process: same process id and host,
or, where a host is not stated, the same process id in a run whose logs name the process of every rank; or the rank of the
local rank in the file's name (view rank_map). A file name that
the process groups exclude is not believed. `claimed` is that rank; `rank` is NULL where a rank from the logs would belong
to two processes at the same time. The host is that of the trace, else the one host that the run knows for its rank.
"""
reads = ["trace", "trace_event", "process", "rank_map", "nccl_rank", "line", "collective_evidence"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
rank_origin = "VARCHAR"
claimed = "INTEGER"
host = "VARCHAR"
world_size = "INTEGER"
backend = "VARCHAR"
pid = "BIGINT"
clock = "VARCHAR"
start = "BIGINT"
end = "BIGINT"
[[case]]
name = "what is stated stays; the groups of a two-dimensional layout leave one rank, a world alone leaves none"
given.trace = """
source | rank | rank_origin     | host | pid | metadata
a      | 0    | distributedInfo | h    | 10  | {}
b      |      |                 | h    | 11  | {"distributedInfo": {"pg_config": [{"ranks": [0, 1, 2, 3]}, {"ranks": []}, {"ranks": [1, 3]}, {"ranks": "[2, 3]"}]}}
c      |      |                 | h    | 12  | {"distributedInfo": {"pg_config": [{"ranks": [0, 1, 2, 3]}]}}
d      | 0    | file_name       | h    | 13  | {"distributedInfo": {"pg_config": [{"ranks": [1, 3]}, {"ranks": [0, 1]}]}}
e      | 2    | file_name       | h    | 14  | {"distributedInfo": {"pg_config": [{"ranks": [4, 5]}]}}
f      | 5    | rank_map        | h    | 15  | {"distributedInfo": {"pg_config": [{"ranks": [4, 5]}]}}
"""
expect = """
source | rank | rank_origin     | claimed | host
a      | 0    | distributedInfo | 0       | h
d      | 1    | process groups  | 1       | h
b      | 3    | process groups  | 3       | h
f      | 5    | rank_map        | 5       | h
c      |      |                 |         | h
e      |      |                 |         | h
"""
[[case]]
name = "groups that the collectives state; a list that was cut short says nothing"
given.trace = """
source | rank | pid
a      |      | 1
b      |      | 2
"""
given.trace_event = """
source | rank | collective | args
a      |      | allreduce  | {"Process Group Ranks": "[0, 2]"}
a      |      | allgather  | {"Process Group Ranks": "[2, 3]"}
a      |      | allgather  | {"Process Group Ranks": "[]"}
b      |      | allreduce  | {"Process Group Ranks": "[1, 2, ..., 64]"}
b      |      | allreduce  | {"Process Group Ranks": "[0, 1]"}
"""
expect = """
source | rank | rank_origin
a      | 2    | process groups
b      |      |
"""
[[case]]
name = "process id and host in the logs; the same process id on another host is another process"
given.trace = """
source | rank | host     | pid | start | end
a      |      | n1       | 100 | 0     | 9
b      |      | n2.local | 100 | 0     | 9
c      |      |          | 100 | 0     | 9
d      |      |          | 300 | 0     | 9
e      | 7    |          | 400 | 0     | 9
"""
given.process = """
source | statement | host | pid | rank | world_size
log    | table     | n1   | 100 | 0    |
log    | table     | n2   | 100 | 4    |
log    | table     | n2   | 300 | 5    | 8
log    | mapping   | n3   |     | 7    |
"""
expect = """
source | rank | rank_origin | host
a      | 0    | logs        | n1
b      | 4    | logs        | n2.local
e      | 7    |             | n3
c      |      |             |
d      |      |             |
"""
[[case]]
name = "launcher of one node: no host is stated, but every process is"
given.trace = """
source | rank | pid
a      |      | 71
b      |      | 70
c      |      | 99
"""
given.process = """
source | statement | pid | local_rank | world_size
log    | world     |     |            | 2
log    | spawn     | 70  | 0          |
log    | spawn     | 71  | 1          |
"""
given.rank_map = """
source | local_rank | rank
log    | 0          | 0
log    | 1          | 1
"""
expect = """
source | rank | rank_origin
b      | 0    | logs
a      | 1    | logs
c      |      |
"""
[[case]]
name = "the file's name states a local rank, and the run knows whose that is"
given.trace = """
source | rank
a      |
"""
given.rank_map = """
source | local_rank | rank
a      | 1          | 5
"""
expect = """
source | rank | rank_origin
a      | 5    | logs
"""
[[case]]
name = "two processes at once cannot be one rank: what is stated stays, what was concluded is withdrawn"
given.trace = """
source | rank | rank_origin     | host | pid | start | end
a      | 0    | distributedInfo | h    | 10  | 0     | 100
b      |      |                 | h    | 11  | 50    | 150
c      |      |                 | h    | 11  | 200   | 250
"""
given.process = """
source | statement | host | pid | rank
log    | table     | h    | 11  | 0
"""
expect = """
source | rank | rank_origin     | claimed
a      | 0    | distributedInfo | 0
c      | 0    | logs            | 0
b      |      |                 | 0
"""
---*/
-- The members of each process group that a trace lists; torch/distributed/distributed_c10d.py lists the groups that a
-- process belongs to, with no ranks where they are all, and c10d cuts long lists short ("[0, 1, ..., 63]").
WITH listed AS (
    SELECT run_id, source, CASE WHEN regexp_full_match(ranks, '"?\[[\d, ]*\]"?') THEN TRY_CAST(trim(ranks, '"') AS INTEGER[]) END AS ranks
    FROM (
        SELECT run_id, source, unnest(json_extract(metadata, '$.distributedInfo.pg_config[*].ranks'))::VARCHAR AS ranks
        FROM trace
        WHERE coalesce(rank_origin, 'file_name') = 'file_name' AND json_valid(metadata)
        UNION ALL
        SELECT DISTINCT e.run_id, e.source, json_extract_string(e.args, '$."Process Group Ranks"')
        FROM trace_event AS e
        INNER JOIN trace AS t
            ON t.run_id = e.run_id AND t.source = e.source AND coalesce(t.rank_origin, 'file_name') = 'file_name'
        WHERE e.collective IS NOT NULL AND contains(e.args, '"Process Group Ranks"') AND json_valid(e.args)
    )
),

member AS (
    SELECT run_id, source, ranks, unnest(ranks) AS rank
    FROM (SELECT DISTINCT run_id, source, list_sort(list_distinct(ranks)) AS ranks FROM listed WHERE len(ranks) > 0)
),

common AS (
    SELECT m.run_id, m.source, m.rank
    FROM member AS m
    INNER JOIN (SELECT run_id, source, count(DISTINCT ranks) AS lists FROM member GROUP BY run_id, source) AS n
        ON n.run_id = m.run_id AND n.source = m.source
    GROUP BY m.run_id, m.source, m.rank, n.lists
    HAVING count(*) = n.lists
),

grouped AS (
    SELECT
        l.run_id, l.source,
        CASE WHEN count(DISTINCT c.rank) = 1 THEN min(c.rank) END AS rank,
        coalesce(list(DISTINCT c.rank) FILTER (WHERE c.rank IS NOT NULL), []) AS possible
    FROM (SELECT DISTINCT run_id, source FROM member) AS l
    LEFT JOIN common AS c ON c.run_id = l.run_id AND c.source = l.source
    GROUP BY l.run_id, l.source
),

-- Which process is which rank, and which rank runs where, as the logs have it.
said AS (
    SELECT run_id, host, pid, rank FROM process WHERE rank IS NOT NULL
    UNION
    SELECT p.run_id, p.host, p.pid, m.rank
    FROM process AS p
    INNER JOIN rank_map AS m
        ON
            m.run_id = p.run_id AND m.source = p.source AND m.host IS NOT DISTINCT FROM p.host
            AND m.local_rank = p.local_rank
    WHERE p.rank IS NULL AND p.pid IS NOT NULL AND m.rank IS NOT NULL
    UNION
    SELECT run_id, host, NULL, rank FROM rank_map WHERE rank IS NOT NULL
    UNION
    SELECT run_id, host, pid, rank FROM nccl_rank
    UNION
    SELECT run_id, host, pid, rank FROM line WHERE pid IS NOT NULL AND rank IS NOT NULL
    UNION
    SELECT run_id, host, pid, rank FROM collective_evidence WHERE host IS NOT NULL AND rank IS NOT NULL
),

-- A host may be called by its full name or its first part; an address is no name.
logged AS (
    SELECT
        run_id, pid, rank, host,
        coalesce(host_name(host), host) AS node
    FROM (SELECT run_id, pid, rank, nullif(host, 'localhost') AS host FROM said)
),

complete AS (
    SELECT run_id, count(DISTINCT rank) AS known
    FROM logged
    WHERE pid IS NOT NULL
    GROUP BY run_id
    HAVING count(DISTINCT rank) >= (SELECT max(p.world_size) FROM process AS p WHERE p.run_id = logged.run_id)
),

file AS (
    SELECT
        t.run_id, t.source, t.host, t.pid,
        coalesce(host_name(t.host), t.host) AS node
    FROM trace AS t
),

by_process AS (
    SELECT f.run_id, f.source, min(l.rank) AS rank
    FROM file AS f
    INNER JOIN logged AS l ON l.run_id = f.run_id AND l.pid = f.pid AND (l.node = f.node OR l.node IS NULL OR f.node IS NULL)
    LEFT JOIN complete AS c ON c.run_id = f.run_id
    GROUP BY f.run_id, f.source
    HAVING count(DISTINCT l.rank) = 1 AND (bool_or(l.node = f.node) OR bool_or(c.known IS NOT NULL))
),

-- The rank that the run gives to the local rank in the file's name.
by_name AS (
    SELECT run_id, source, min(rank) AS rank
    FROM rank_map
    WHERE local_rank IS NOT NULL
    GROUP BY run_id, source
    HAVING count(DISTINCT rank) = 1
),

judged AS (
    SELECT
        t.run_id, t.source, t.host, t.world_size, t.backend, t.pid, t.clock, t."start", t."end",
        t.rank, t.rank_origin,
        t.rank IS NOT NULL AND (
            coalesce(t.rank_origin, '') != 'file_name' OR g.possible IS NULL OR list_contains(g.possible, t.rank)
        ) AS believed,
        g.rank AS group_rank,
        CASE
            WHEN p.rank != n.rank THEN NULL
            WHEN g.possible IS NULL OR list_contains(g.possible, coalesce(p.rank, n.rank)) THEN coalesce(p.rank, n.rank)
        END AS log_rank
    FROM trace AS t
    LEFT JOIN grouped AS g ON g.run_id = t.run_id AND g.source = t.source
    LEFT JOIN by_process AS p ON p.run_id = t.run_id AND p.source = t.source
    LEFT JOIN by_name AS n ON n.run_id = t.run_id AND n.source = t.source
),

claim AS (
    SELECT
        run_id, source, host, world_size, backend, pid, clock, "start", "end",
        CASE WHEN believed THEN rank ELSE coalesce(group_rank, log_rank) END AS claimed,
        CASE
            WHEN believed THEN rank_origin
            WHEN group_rank IS NOT NULL THEN 'process groups'
            WHEN log_rank IS NOT NULL THEN 'logs'
        END AS origin
    FROM judged
),

-- Ranks from the logs that another process has at the same time.
double AS (
    SELECT DISTINCT c.run_id, c.source
    FROM claim AS c
    INNER JOIN claim AS o
        ON
            o.run_id = c.run_id AND o.claimed = c.claimed AND o.source != c.source
            AND coalesce(o.pid, -1) != coalesce(c.pid, -1) AND o."start" < c."end" AND c."start" < o."end"
    WHERE c.origin = 'logs'
),

settled AS (
    SELECT
        c.run_id, c.source, c.claimed, c.origin, c.host, c.world_size, c.backend, c.pid, c.clock, c."start", c."end",
        CASE WHEN d.source IS NULL THEN c.claimed END AS rank
    FROM claim AS c
    LEFT JOIN double AS d ON d.run_id = c.run_id AND d.source = c.source
),

home AS (
    SELECT s.run_id, s.source, any_value(l.host) AS host
    FROM settled AS s
    INNER JOIN logged AS l
        ON
            l.run_id = s.run_id AND l.rank = s.rank AND l.host IS NOT NULL
            AND (l.pid IS NULL OR s.pid IS NULL OR l.pid = s.pid)
    WHERE s.host IS NULL
    GROUP BY s.run_id, s.source
    HAVING count(DISTINCT l.node) = 1
)

SELECT
    s.run_id, s.source, s.rank,
    CASE WHEN s.rank IS NOT NULL THEN s.origin END AS rank_origin,
    s.claimed,
    coalesce(s.host, h.host) AS host,
    s.world_size, s.backend, s.pid, s.clock, s."start", s."end"
FROM settled AS s
LEFT JOIN home AS h ON h.run_id = s.run_id AND h.source = s.source
ORDER BY s.run_id, s.rank NULLS LAST, s.source
