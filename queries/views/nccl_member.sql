/*---
title = "Communicators of each process, and what makes each known to the other processes"
doc   = """
group_key is the same on every member: the communicator's hash; for a split that prints none (NCCL 2.24 and later) the hash
of its parent, the number of the split and its color; before 2.16, where nothing is printed, the how-manieth communicator of
all ranks it is, if every process made equally many of them: what needs all ranks is made in one order (src/init.cc). Others have none.
`devices` are the names by which channel lines call its device. `first`, `made` and `ended` are lines: of its first mention, of the end of its making, of its destruction."""
reads = ["nccl_comm"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
host = "VARCHAR"
pid = "BIGINT"
tid = "BIGINT"
comm = "VARCHAR"
comm_rank = "INTEGER"
nranks = "INTEGER"
devices = "VARCHAR[]"
group_key = "VARCHAR"
first = "BIGINT"
made = "BIGINT"
ended = "BIGINT"
[[case]]
name = "a pointer used again is another communicator; the hash stands at the start alone"
given.nccl_comm = """
source | host | pid | tid | comm | line | part | statement     | comm_id | nranks | comm_rank | device | nvml_dev
f      | n1   | 10  | 11  | 0xa  | 1    | 0    | init_start    | 0x00C0  | 8      | 3         | 9b000  | 3
f      | n1   | 10  | 11  | 0xa  | 2    | 0    | init_complete |         | 8      | 3         | 9b000  | 3
f      | n1   | 10  | 12  | 0xa  | 5    | 0    | destroy       |         | 8      | 3         | 9b000  |
f      | n1   | 10  | 12  | 0xa  | 7    | 0    | init_complete | 0xd     | 4      | 1         | 9b000  |
"""
expect = """
comm | comm_rank | nranks | group_key | first | made | ended | tid | devices
0xa  | 3         | 8      | c0        | 1     | 2    | 5     | 11  | ['9b000', '3']
0xa  | 1         | 4      | d         | 7     | 7    |       | 12  | ['9b000']
"""
[[case]]
name = "a split without a hash is known by its parent"
given.nccl_comm = """
source | host | pid | comm | line | statement     | comm_id | nranks | comm_rank | parent | split | color
f      | n1   | 10  | 0xa  | 1    | init_complete | 0xc0    | 8      | 3         |        |       |
f      | n1   | 10  | 0xb  | 2    | init_start    |         | 4      | 1         | 0xa    | 2     | 5
f      | n1   | 10  | 0xb  | 3    | init_complete |         | 4      | 1         | 0xa    | 2     | 5
f      | n1   | 10  | 0xe  | 4    | init_complete |         | 4      | 1         | 0xdead | 2     | 5
"""
expect = """
comm | group_key
0xa  | c0
0xb  | c0/2/5
0xe  |
"""
[[case]]
name = "before 2.16: the second communicator of all ranks, and a smaller one that nothing identifies"
given.nccl_comm = """
source | host | pid | comm | line | statement     | nranks | comm_rank
f      | n1   | 10  | 0xa  | 1    | init_complete | 2      | 0
f      | n1   | 10  | 0xb  | 5    | init_complete | 2      | 0
f      | n1   | 10  | 0xc  | 6    | init_complete | 1      | 0
f      | n2   | 10  | 0xd  | 3    | init_complete | 2      | 1
f      | n2   | 10  | 0xe  | 9    | init_complete | 2      | 1
"""
expect = """
host | comm | group_key
n1   | 0xa  | all 1
n1   | 0xb  | all 2
n1   | 0xc  |
n2   | 0xd  | all 1
n2   | 0xe  | all 2
"""
[[case]]
name = "one process made one fewer, or its lines are lost: which is which cannot be known"
given.nccl_comm = """
source | host | pid | comm | line | statement     | nranks | comm_rank
f      | n1   | 10  | 0xa  | 1    | init_complete | 2      | 0
f      | n1   | 10  | 0xb  | 5    | init_complete | 2      | 0
f      | n2   | 10  | 0xd  | 3    | init_complete | 2      | 1
"""
expect = """
host | comm | group_key
n1   | 0xa  |
n1   | 0xb  |
n2   | 0xd  |
"""
---*/
WITH numbered AS (  -- a life begins where a pointer is first spoken of, and where it is used again
    SELECT
        run_id, source, host, pid, tid, comm, line, statement, comm_rank, nranks, device, nvml_dev, comm_id, parent, split, color,
        count(*) FILTER (WHERE begins) OVER (
            PARTITION BY run_id, source, host, pid, comm ORDER BY line, part
        ) AS life
    FROM (
        SELECT
            run_id, source, host, pid, tid, comm, line, part, statement, comm_rank, nranks, device, nvml_dev, comm_id, parent, split, color,
            statement = 'init_start'
            OR statement = 'init_complete' AND coalesce(lag(statement) OVER pointer, '') <> 'init_start' AS begins
        FROM nccl_comm
        WHERE comm IS NOT NULL AND statement IN ('init_start', 'init_complete', 'destroy', 'abort')
        WINDOW pointer AS (PARTITION BY run_id, source, host, pid, comm ORDER BY line, part)
    ) AS spoken
),

lives AS (
    SELECT
        run_id, source, host, pid, comm,
        any_value(tid) FILTER (WHERE statement LIKE 'init%') AS tid,
        any_value(comm_rank) AS comm_rank,
        any_value(nranks) AS nranks,
        list_filter([any_value(device), CAST(any_value(nvml_dev) AS VARCHAR)], LAMBDA name: name IS NOT NULL) AS devices,
        ltrim(lower(any_value(comm_id)), '0x') AS comm_id,
        any_value(parent) AS parent,
        any_value(split) AS split,
        any_value(color) AS color,
        min(line) AS first,
        min(line) FILTER (WHERE statement = 'init_complete') AS made,
        min(line) FILTER (WHERE statement IN ('destroy', 'abort')) AS ended
    FROM numbered
    WHERE life > 0
    GROUP BY run_id, source, host, pid, comm, life
),

largest AS (
    SELECT run_id, max(nranks) AS nranks FROM lives GROUP BY run_id
),

whole AS (
    SELECT
        l.run_id, l.source, l.host, l.pid, l.comm, l.first, l.nranks,
        row_number() OVER (PARTITION BY l.run_id, l.host, l.pid ORDER BY l.first) AS number,
        count(*) OVER (PARTITION BY l.run_id, l.host, l.pid) AS made
    FROM lives AS l
    SEMI JOIN largest AS g ON l.run_id = g.run_id AND l.nranks = g.nranks
    WHERE l.comm_id IS NULL AND l.parent IS NULL
),

alike AS (
    SELECT run_id
    FROM whole
    GROUP BY run_id
    HAVING
        min(made) = max(made)
        AND count(DISTINCT host || ':' || pid) = max(nranks)
        AND count(DISTINCT source || ':' || host || ':' || pid) = max(nranks)
)

SELECT
    l.run_id, l.source, l.host, l.pid, l.tid, l.comm, l.comm_rank, l.nranks, l.devices,
    coalesce(
        l.comm_id,
        p.comm_id || '/' || l.split || '/' || l.color,
        CASE WHEN a.run_id IS NOT NULL THEN 'all ' || w.number END
    ) AS group_key,
    l.first, l.made, l.ended
FROM lives AS l
ASOF LEFT JOIN lives AS p
    ON
        l.run_id = p.run_id AND l.source = p.source AND l.host = p.host AND l.pid = p.pid AND l.parent = p.comm
        AND l.first >= p.first
LEFT JOIN whole AS w
    ON
        l.run_id = w.run_id AND l.source = w.source AND l.host = w.host AND l.pid = w.pid AND l.comm = w.comm
        AND l.first = w.first
LEFT JOIN alike AS a ON w.run_id = a.run_id
ORDER BY l.run_id, l.source, l.host, l.pid, l.first
