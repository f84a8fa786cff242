/*---
title    = "An allocation was refused"
doc      = "Records that say an allocation was refused, on the device, on the host, in shared or in pinned memory, also by SIGBUS in a worker of a data loader, with what was asked for, what was free and what the allocator kept unused. The earliest counts, with the ranks that report the same within a minute; where every rank reports it, nobody is named. A refusal after which its writer went on for several steps was caught: it counts only where nothing else explains that a process failed, and then names nobody; nor does it count where every process ended well. One before all steps of its writer names nobody either while nothing else failed: batch sizes are searched there. Where the kernel killed a process that no rank is known to own, it counts only if a process of the run was killed on that host or on one that is not known, or if peers lost one and nothing else says why: hosts run other programs too. Where such a kill lies hours away from the run and only the zone of a clock may explain that, the confidence is low, or where its process id is that of a rank, a process of the run must have been killed."
fault    = "oom"
severity = "fault"
weight   = 3
confidence = "high"
reads    = ["events", "outlived", "rank_host", "run_summary"]
summary  = "{kind} memory was refused ({who}){numbers}"
[params]
together = { type = "BIGINT", default = 60000000000, doc = "Refusals within this many ns count as one happening." }
went_on = { type = "BIGINT", default = 2, doc = "Steps in the same file after a refusal that buffered output alone may bring; after more of them it was caught." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
kind = "VARCHAR"
numbers = "VARCHAR"
asked = "BIGINT"
free = "BIGINT"
unused = "BIGINT"
total = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
confidence = "VARCHAR"
[[case]]
name = "rank 1 of 2"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | rank | name | bytes | after_step | line
oom  | root | 1    | host | 1024  | 11         | 9
"""
expect = """
rank | culprit | step | kind | asked | line
1    | true    | 12   | host | 1024  | 9
"""
[[case]]
name = "before all steps of its rank, and nothing else failed: a batch size was searched"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps | first
log    | 9    | 0     | true
"""
given.events = """
kind | role | rank | name   | bytes | after_step | source | line
oom  | root | 1    | device | 1024  | 11         | log    | 9
"""
expect = """
rank | culprit | kind   | asked | line
1    | false   | device | 1024  | 9
"""
[[case]]
name = "the kernel killed a process of rank 1: the limit of its cgroup; another process of the host did the run no harm"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | rank | pid | name | bytes | line | detail
oom  | root | 1    | 77  | host |       | 8    | {"constraint": "CONSTRAINT_MEMCG", "cgroup": "/job"}
oom  | root | 1    | 77  | host | 2048  | 9    | {"process": "python3"}
oom  | root |      | 99  | host | 2048  | 2    | {"process": "chrome"}
"""
expect = """
rank | culprit | kind | numbers | line
1    | true    | host | : the limit of cgroup /job was reached, 2,048 B held by process 77 | 8
"""
[[case]]
name = "the kernel killed a process that is not the run's, and nothing failed"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | pid | name | bytes | line | detail
oom  | root | 99  | host | 2048  | 2    | {"process": "chrome"}
"""
expect = "rank | culprit"
[[case]]
name = "NCCL's warning of rank 0, and the exceptions of both ranks"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role    | rank | name          | bytes | line | message
oom       | root    | 0    | shared_memory | 4096  | 3    | NCCL WARN
exception | cascade | 0    | Error         |       | 8    | creating shared memory segment /dev/shm/nccl-x (size 4096), error: No space left on device (28)
exception | cascade | 1    | Error         |       | 9    | creating shared memory segment /dev/shm/nccl-x (size 4096), error: No space left on device (28)
"""
expect = """
rank | culprit | kind   | asked | line
0    | false   | shared | 4096  | 3
1    | false   | shared |       | 9
"""
[[case]]
name = "SIGBUS in a worker of a data loader"
given.run_summary = """
world_size
4
"""
given.events = """
kind        | role    | rank | pid | name      | code | after_step | line
data_worker | symptom | 3    | 99  | Bus error | -7   | 30         | 9
"""
expect = """
rank | culprit | step | kind   | numbers | line
3    | true    | 31   | shared |         | 9
"""
[[case]]
name = "the kernel killed a foreign process, and the run has an exception of its own, or a process of it was killed too"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role    | rank | pid | name       | code | line | clock
oom       | root    |      | 99  | host       |      | 2    | local
exception | root    | 1    |     | ValueError |      | 7    |
exit      | symptom |      |     |            | 1    | 9    |
"""
expect = "rank | culprit"
[[case]]
name = "hours away from the run the kernel killed a process with the id of rank 1, and rank 0 has an exception of its own"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role | rank | pid | name       | line | clock
oom       | root | 1    | 99  | host       | 2    | other
exception | root | 0    |     | ValueError | 7    |
"""
expect = "rank | culprit"
[[case]]
name = "a process of the run was killed on one host, and the kernel of another killed a foreign one"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role    | host | pid | name | code | line
oom  | root    | n1   | 99  | host |      | 2
exit | symptom | n2.x |     |      | -9   | 9
"""
expect = "rank | culprit"
[[case]]
name = "a process of the run was killed, and the kernel killed one at a time that does not fit without another zone"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role    | rank | pid | name | code | line | clock
oom  | root    |      | 99  | host |      | 2    | other
exit | symptom |      |     |      | -9   | 9    |
"""
expect = """
rank | culprit | kind | confidence | line
     | false   | host | low        | 2
"""
[[case]]
name = "what was free and what was kept, in bytes"
given.run_summary = """
world_size
4
"""
given.events = """
kind | role | rank | name   | bytes | line | detail
oom  | root | 1    | device | 4096  | 9    | {"free":1024,"unallocated":2097152,"total":1073741824}
"""
expect = """
rank | culprit | kind   | asked | free | unused  | total      | line
1    | true    | device | 4096  | 1024 | 2097152 | 1073741824 | 9
"""
[[case]]
name = "every rank: nobody is named"
given.run_summary = """
world_size
2
"""
given.events = """
kind | role | rank | name   | bytes | line
oom  | root | 0    | device | 1024  | 3
oom  | root | 1    | device | 1024  | 9
"""
expect = """
rank | culprit | kind   | asked | line
0    | false   | device | 1024  | 3
1    | false   | device | 1024  | 9
"""
[[case]]
name = "a refusal that was caught: training went on, and nothing failed"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps
log    | 9    | 26
"""
given.events = """
kind | role | source | rank | name   | after_step | line
oom  | root | log    | 1    | device | 4          | 9
"""
expect = "rank | culprit | step | kind | asked"
[[case]]
name = "a caught one, and a process that failed later: nobody is named"
given.run_summary = """
world_size
2
"""
given.outlived = """
source | line | steps
log    | 9    | 26
"""
given.events = """
kind | role    | source | rank | name | code | after_step | line
oom  | root    | log    | 1    | host |      | 4          | 9
exit | symptom | log    |      |      | -9   | 30         | 99
"""
expect = """
rank | culprit | step | kind | line
1    | false   | 5    | host | 9
"""
[[case]]
name = "other events"
given.run_summary = """
world_size
2
"""
given.events = """
kind      | role | rank | line
exception | root | 0    | 3
"""
expect = "rank | culprit | step | kind | asked"
---*/
WITH said AS (
    SELECT
        e.rank, CASE WHEN e.kind = 'oom' THEN e.pid END AS pid, CASE WHEN e.kind = 'oom' THEN e.name ELSE 'shared_memory' END AS kind, e.bytes, e.detail, e.host, e.time, e.clock, e.source, e.line, e.part, e.message,
        coalesce(e.step, e.after_step + 1) AS step,
        coalesce(o.steps > $went_on, FALSE) AS caught,
        coalesce(o.first, FALSE) AS early
    FROM events AS e
    LEFT JOIN outlived AS o
        ON e.run_id = o.run_id AND e.source = o.source AND e.line = o.line AND e.part IS NOT DISTINCT FROM o.part
    WHERE
        e.kind = 'oom' OR (e.kind = 'data_worker' AND e.code = -7)
        -- The exceptions of all ranks quote NCCL's warning, which not every rank printed.
        OR (e.kind = 'exception' AND regexp_matches(e.message, 'shared memory segment .*(?:No space left on device|Cannot allocate memory)'))
),

failure AS (
    SELECT
        bool_or(kind = 'exit' AND code <> 0 OR kind = 'exception' AND role = 'cascade') AS seen,
        bool_or(kind = 'exit' AND code <> 0 OR kind = 'exception' AND role = 'cascade' OR kind IN ('watchdog', 'peer_lost')) AS felt,
        bool_or(kind IN ('exit', 'signal', 'data_worker') AND (code IN (-9, 137) OR (kind = 'data_worker' AND name IS NULL)))
        OR (
            bool_or(kind IN ('peer_lost', 'watchdog') OR (kind = 'exception' AND role = 'cascade') OR (kind = 'exit' AND code <> 0))
            AND NOT bool_or(kind IN ('exception', 'device_error', 'xid', 'external_stop', 'node_loss') AND role = 'root')
            AND NOT coalesce(bool_or(kind IN ('exit', 'signal') AND code IN (-4, -6, -7, -8, -11, 132, 134, 135, 136, 139)), FALSE)
        ) AS killed,
        (SELECT count(*) FROM said WHERE NOT caught) AS fatal
    FROM events
),

-- Hosts on which a process of the run is known to have been killed: a kernel that killed elsewhere killed others.
struck AS (
    SELECT DISTINCT coalesce(h.host, host_name(e.host), e.host) AS host
    FROM events AS e
    LEFT JOIN rank_host AS h ON e.rank = h.rank
    WHERE
        e.kind IN ('exit', 'signal', 'data_worker') AND (e.code IN (-9, 137) OR (e.kind = 'data_worker' AND e.name IS NULL))
        AND coalesce(h.host, e.host) IS NOT NULL
),

refused AS (
    SELECT
        s.rank, s.pid, s.kind, s.bytes, s.detail, s.time, s.clock, s.source, s.line, s.message, s.step, s.caught, s.early AND NOT coalesce(f.felt, FALSE) AS early,
        row_number() OVER (PARTITION BY coalesce(s.rank, -1) ORDER BY s.time NULLS LAST, s.source, s.line, s.part) AS place
    FROM said AS s
    CROSS JOIN failure AS f
    WHERE
        (NOT s.caught OR (f.seen AND f.fatal = 0))
        AND (
            (s.rank IS NOT NULL AND s.clock IS DISTINCT FROM 'other') OR s.pid IS NULL
            OR (
                f.killed
                AND (
                    s.host IS NULL OR NOT EXISTS (SELECT 1 FROM struck)
                    OR coalesce(host_name(s.host), s.host) IN (SELECT k.host FROM struck AS k)
                )
            )
        )
),

first_one AS (
    SELECT min(time) AS time FROM refused
),

-- The kernel says in one record which limit was reached, and in the next how much the process held.
killed AS (
    SELECT pid, any_value(detail ->> '$.constraint') AS reached, any_value(detail ->> '$.cgroup') AS cgroup, max(bytes) AS held
    FROM said
    WHERE kind = 'host' AND pid IS NOT NULL
    GROUP BY pid
),

together AS (
    SELECT
        r.rank, r.pid, r.step, r.kind, r.bytes, r.time, r.clock, r.source, r.line, r.message, r.caught, r.early,
        CAST(coalesce(r.detail ->> '$.free', r.detail ->> '$.free_1') AS BIGINT) AS free,
        coalesce(
            CAST(r.detail ->> '$.unallocated' AS BIGINT),
            CAST(r.detail ->> '$.reserved_1' AS BIGINT) - CAST(r.detail ->> '$.allocated_1' AS BIGINT)
        ) AS unused,
        CAST(r.detail ->> '$.total' AS BIGINT) AS total
    FROM refused AS r
    CROSS JOIN first_one AS f
    WHERE r.place = 1 AND (r.time IS NULL OR f.time IS NULL OR r.time - f.time <= $together)
)

SELECT
    t.rank,
    t.rank IS NOT NULL AND NOT t.caught AND (NOT t.early OR s.world_size = 1) AND (
        count(DISTINCT t.rank) OVER () < s.world_size
        OR s.world_size = 1
        OR (s.world_size IS NULL AND count(DISTINCT t.rank) OVER () = 1)
    ) AS culprit,
    t.step,
    replace(t.kind, '_memory', '') AS kind,
    rtrim(
        ': ' || CASE
            WHEN k.reached = 'CONSTRAINT_MEMCG' THEN 'the limit of ' || coalesce('cgroup ' || k.cgroup, 'a cgroup') || ' was reached, '
            WHEN k.reached IS NOT NULL THEN 'the whole host was full, '
            ELSE ''
        END
        || coalesce(format('{:,} B held by process {}, ', k.held, k.pid), '')
        || CASE WHEN t.pid IS NULL THEN coalesce(format('{:,} B asked, ', t.bytes), '') ELSE '' END
        || coalesce(format('{:,} B free, ', t.free), '')
        || coalesce(format('{:,} B reserved but unused', t.unused), ''),
        ', :'
    ) AS numbers,
    CASE WHEN t.kind <> 'host' OR t.pid IS NULL THEN t.bytes END AS asked,
    t.free, t.unused, t.total,
    t.time, t.source, t.line,
    t.message AS text,
    CASE WHEN t.clock = 'other' AND t.rank IS NULL THEN 'low' ELSE 'high' END AS confidence
FROM together AS t
CROSS JOIN run_summary AS s
LEFT JOIN killed AS k ON t.kind = 'host' AND t.pid = k.pid
WHERE s."end" IS DISTINCT FROM 'completed'
ORDER BY t.rank NULLS LAST
