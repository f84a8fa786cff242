/*---
title = "Events with the global rank resolved"
doc   = "Every recognised happening; where the record states no global rank, the one that its file, local rank, host, label, process id or device were said to be. Process ids of one host say nothing of those of another. A stamp without a year takes the run's. Where no step is near the record in its file, the last step that its rank printed anywhere; for an end, an exception or a refusal on a rank that prints no steps, the last that anybody printed before it in that file. Records of the machine (kernel, devices) in files of their own that lie outside the run's time are left out, as logs of a host go back for weeks; where the zone of one of the clocks is not stated and the distance may be one of zones, an out-of-memory kill, a device's fault or what a process of the run did stays, with the clock `other` and no time. An allocation that the device's runtime refused while pinned memory was asked for is one of pinned memory."
materialize = true
reads = ["event", "metric", "metric_span", "step_clock", "process", "rank_map", "run_year", "rank_progress", "device_rank"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
part = "INTEGER"
time = "BIGINT"
clock = "VARCHAR"
kind = "VARCHAR"
role = "VARCHAR"
rank = "INTEGER"
local_rank = "INTEGER"
host = "VARCHAR"
pid = "BIGINT"
attempt = "INTEGER"
step = "BIGINT"
after_step = "BIGINT"
name = "VARCHAR"
code = "BIGINT"
bytes = "BIGINT"
duration = "BIGINT"
message = "VARCHAR"
detail = "VARCHAR"
[[case]]
name = "a process id that the launcher tied to a rank"
given.process = """
pid | rank
77  | 3
"""
given.event = """
kind | pid | rank
exit | 77  |
exit | 78  |
exit |     | 1
"""
expect = """
kind | pid | rank
exit | 77  | 3
exit | 78  |
exit |     | 1
"""
[[case]]
name = "the same process id on another host, a loader's process, and a device that is known from its bus"
given.process = """
host | pid | rank
a    | 77  | 3
"""
given.device_rank = """
host | pci   | rank
a    | 3b000 | 5
"""
given.event = """
kind        | host     | pid | rank | detail
oom         | b        | 77  |      |
oom         | a.site   | 77  |      |
data_worker | a        | 90  | 2    |
oom         | a        | 90  |      |
xid         | a        |     |      | {"pci": "0000:3b:00"}
xid         | b        |     |      | {"pci": "0000:3b:00"}
throttle    |          |     |      | {"pci": "00000000:3B:00.0"}
"""
expect = """
kind        | host     | pid | rank
oom         | b        | 77  |
oom         | a.site   | 77  | 3
data_worker | a        | 90  | 2
oom         | a        | 90  | 2
xid         | a        |     | 5
xid         | b        |     |
throttle    |          |     | 5
"""
[[case]]
name = "an exception on a rank that prints no steps, between steps of rank 0"
given.metric = """
source | rank | step | line | name
a      | 0    | 3    | 1    | loss
a      | 0    | 4    | 5    | loss
"""
given.event = """
source | kind      | rank | line
a      | exception | 2    | 3
"""
expect = """
kind      | rank | after_step
exception | 2    | 3
"""
[[case]]
name = "a process id that the launcher tied to a local rank"
given.process = """
source | statement | pid | local_rank
a      | spawn     | 77  | 1
"""
given.rank_map = """
source | local_rank | rank
a      | 1          | 5
"""
given.event = """
kind | pid | rank
exit | 77  |
"""
expect = """
kind | pid | rank
exit | 77  | 5
"""
[[case]]
name = "a stamp without a year, and the steps of another file of the same rank"
given.run_year = """
year
2026
"""
given.rank_progress = """
rank | last_step
1    | 7
"""
given.event = """
kind      | rank | time              | clock
exception | 1    | 63072000000000000 | day
"""
expect = """
kind      | rank | time                | clock | after_step
exception | 1    | 1767225600000000000 | year  | 7
"""
[[case]]
name = "records of the host's log a week, hours and minutes away from the run: clocks with a zone, and without one"
given.metric_span = """
source | started             | ended
log    | 1767225600000000000 | 1767225700000000000
"""
given.process = """
source | host | pid | rank
log    | a    | 77  | 3
"""
given.event = """
source | kind      | name | time                | clock | host | pid | role
log    | exception |      | 1767225700000000000 | utc   |      |     | root
dmesg  | xid       | week | 1766620800000000000 | utc   | a    |     | root
dmesg  | oom       | host | 1767215600000000000 | utc   | a    | 77  | root
dmesg  | xid       | late | 1767226000000000000 | utc   | a    |     | root
dmesg  | oom       | zone | 1767215600000000000 | local | a    |     | root
dmesg  | ecc       | day  | 1767215600000000000 | local | a    |     | root
dmesg  | hardware  | disk | 1767215600000000000 | local | a    |     | root
dmesg  | oom       | boot |                     |       | a    |     | root
"""
expect = """
kind      | name | time                | clock
exception |      | 1767225700000000000 | utc
xid       | late | 1767226000000000000 | utc
oom       | zone |                     | other
ecc       | day  | 1767215600000000000 | local
oom       | boot |                     |
"""
[[case]]
name = "the kernel killed a rank that prints no steps: the last step of the run, in a run that was restarted the last before it"
given.metric_span = """
run_id | source | attempt | last_step | started             | ended
a      | log    | 0       | 30        | 1767225600000000000 | 1767225600000000000
b      | log    | 0       | 30        | 1767225600000000000 | 1767225600000000000
b      | log    | 1       | 50        | 1767225700000000000 | 1767225700000000000
"""
given.step_clock = """
run_id | attempt | step | time
a      | 0       | 30   | 1767225600000000000
b      | 0       | 30   | 1767225600000000000
b      | 1       | 50   | 1767225700000000000
"""
given.process = """
run_id | source | host | pid | rank
a      | log    | h    | 77  | 3
b      | log    | h    | 77  | 3
"""
given.event = """
run_id | source | line | kind | name | time                | clock | host | pid
a      | dmesg  | 1    | oom  | host |                     |       | h    | 77
b      | dmesg  | 1    | oom  | host | 1767225650000000000 | local | h    | 77
b      | dmesg  | 2    | oom  | host |                     |       | h    | 77
"""
expect = """
run_id | rank | after_step
a      | 3    | 30
b      | 3    | 30
b      | 3    |
"""
[[case]]
name = "the scheduler says when it ended the job"
given.event = """
source | line | kind          | name       | detail
log    | 5    | external_stop | TIME LIMIT | {"at": "2026-01-01T00:00:00"}
log    | 6    | external_stop | TIME LIMIT | {"at": "some day"}
"""
expect = """
line | kind          | time                | clock
5    | external_stop | 1767225600000000000 | local
6    | external_stop |                     |
"""
[[case]]
name = "the runtime refused, in a frame that pins memory"
given.event = """
source | line | kind      | name   | bytes | detail
log    | 5    | oom       | device |       |
log    | 5    | exception |        |       | {"pinning": true}
log    | 9    | oom       | device |       |
"""
expect = """
line | kind      | name
5    | oom       | pinned
5    | exception |
9    | oom       | device
"""
[[case]]
name = "a signal by its name; tasks that are ranks, and tasks of which nothing is known"
given.rank_map = """
run_id | task | rank | origin
a      | 3    | 3    | task
"""
given.process = """
run_id | statement
c      | mpi_world
"""
given.event = """
run_id | kind | task | name               | detail
a      | exit | 3    | Segmentation fault |
b      | exit | 3    | Segmentation fault |
c      | exit | 2    |                    | {"signal": "9"}
"""
expect = """
run_id | kind | rank | code
a      | exit | 3    | -11
b      | exit |      | -11
c      | exit | 2    | -9
"""
---*/
WITH own AS (  -- files that the run wrote, and when; stamps without a year lie in 1972
    SELECT run_id, source, unnest([started, ended]) AS time, NULL AS clock, last_step IS NOT NULL AS stepped FROM metric_span
    UNION ALL
    SELECT run_id, source, time, NULL, FALSE FROM process
    UNION ALL
    SELECT run_id, source, CASE WHEN clock IN ('utc', 'local', 'year') THEN time END, clock, FALSE
    FROM event
    WHERE kind NOT IN ('oom', 'xid', 'sxid', 'hardware', 'signal', 'ecc', 'throttle')
),

written AS (
    SELECT run_id, source, bool_or(stepped) AS stepped FROM own GROUP BY run_id, source
),

spans AS (
    SELECT
        run_id, min(time) AS started, max(time) AS ended,
        coalesce(bool_and(clock = 'utc') FILTER (WHERE clock IN ('utc', 'local', 'year')), FALSE) AS zoned
    FROM own
    WHERE time > 94694400000000000  -- 1973
    GROUP BY run_id
),

owners AS (
    SELECT p.run_id, p.host, p.pid, coalesce(p.rank, m.rank) AS rank
    FROM process AS p
    LEFT JOIN rank_map AS m
        ON
            p.run_id = m.run_id AND p.source = m.source AND p.local_rank = m.local_rank
            AND p.host IS NOT DISTINCT FROM m.host AND m.task IS NULL
    WHERE p.pid IS NOT NULL AND coalesce(p.rank, m.rank) IS NOT NULL
    UNION ALL
    SELECT e.run_id, e.host, e.pid, coalesce(e.rank, m.rank) AS rank
    FROM event AS e
    LEFT JOIN rank_map AS m
        ON
            e.run_id = m.run_id AND e.source = m.source AND e.local_rank IS NOT DISTINCT FROM m.local_rank
            AND e.host IS NOT DISTINCT FROM m.host AND e.task IS NOT DISTINCT FROM m.task
    WHERE e.kind = 'data_worker' AND e.pid IS NOT NULL AND coalesce(e.rank, m.rank) IS NOT NULL
),

-- A host is compared by its first name; an address says nothing of a name.
who AS (
    SELECT
        run_id, pid, rank, host_name(host) AS host
    FROM owners
),

asked AS (
    SELECT DISTINCT
        run_id, pid, host, host_name(host) AS short
    FROM event
    WHERE pid IS NOT NULL
),

pids AS (
    SELECT a.run_id, a.pid, a.host, min(w.rank) AS rank
    FROM asked AS a
    INNER JOIN who AS w ON a.run_id = w.run_id AND a.pid = w.pid AND (a.short IS NULL OR w.host IS NULL OR a.short = w.host)
    GROUP BY a.run_id, a.pid, a.host
    HAVING count(DISTINCT w.rank) = 1
),

-- Bus ids as NCCL writes them: one hexadecimal number of domain, bus, device and function (the driver's lines lack it).
located AS (
    SELECT DISTINCT
        run_id, host, detail ->> '$.pci' AS pci, TRY_CAST(detail ->> '$.device' AS INTEGER) AS device,
        ltrim(
            lower(replace(replace(detail ->> '$.pci', ':', ''), '.', ''))
            || CASE WHEN contains(detail ->> '$.pci', '.') THEN '' ELSE '0' END, '0'
        ) AS bus
    FROM event
    WHERE kind IN ('xid', 'throttle', 'ecc') AND (detail ->> '$.pci' IS NOT NULL OR detail ->> '$.device' IS NOT NULL)
),

devices AS (
    SELECT l.run_id, l.host, l.pci, l.device, min(d.rank) AS rank
    FROM located AS l
    INNER JOIN device_rank AS d
        ON
            l.run_id = d.run_id
            AND (l.host IS NULL OR l.host = d.host OR host_name(l.host) = host_name(d.host))
            AND (l.bus = d.pci OR (l.device = d.device AND (l.bus IS NULL OR d.pci IS NULL)))
    GROUP BY l.run_id, l.host, l.pci, l.device
    HAVING count(DISTINCT d.rank) = 1
),

ended AS (  -- an end on a rank that prints no steps
    SELECT e.run_id, e.source, e.line, e.part, e.kind, e.attempt
    FROM event AS e
    WHERE
        e.kind IN ('exception', 'oom', 'signal', 'exit', 'device_error', 'data_worker', 'not_finite') AND e.step IS NULL AND e.after_step IS NULL
        AND (e.rank IS NOT NULL OR e.local_rank IS NOT NULL)
),

near AS (
    SELECT e.run_id, e.source, e.line, e.part, e.kind, m.step
    FROM ended AS e
    ASOF INNER JOIN (
        SELECT run_id, source, attempt, line, step
        FROM metric
        WHERE step IS NOT NULL AND source IN (SELECT ended.source FROM ended)
    ) AS m
        ON e.run_id = m.run_id AND e.source = m.source AND e.line >= m.line
    WHERE e.attempt IS NOT DISTINCT FROM m.attempt
),

reached AS (
    SELECT run_id, max(last_step) AS last_step, count(DISTINCT attempt) AS attempts
    FROM metric_span
    WHERE last_step IS NOT NULL
    GROUP BY run_id
),

timed AS (  -- the step that the run had come to, for records in files without steps
    SELECT e.run_id, e.source, e.line, e.part, m.step
    FROM (
        SELECT run_id, source, line, part, time + CASE WHEN time % 1000000000 = 0 THEN 999999999 ELSE 0 END AS time FROM event  -- whole seconds
        WHERE kind IN ('oom', 'xid', 'signal', 'exit', 'exception', 'node_loss') AND step IS NULL AND clock IN ('utc', 'local')
    ) AS e
    ASOF INNER JOIN step_clock AS m
        ON e.run_id = m.run_id AND e.time >= m.time
),

said AS (  -- the scheduler says in words when it ended the job, without a stamp of its own
    SELECT run_id, source, line, part, kind, epoch_ns(TRY_CAST(detail ->> '$.at' AS TIMESTAMP)) AS time
    FROM event
    WHERE kind IN ('external_stop', 'node_loss') AND (time IS NULL OR clock = 'bound') AND detail ->> '$.at' IS NOT NULL
),

pinning AS (  -- exceptions whose deepest frame asks for pinned memory
    SELECT DISTINCT run_id, source, line, part FROM event WHERE kind = 'exception' AND detail ->> '$.pinning' = 'true'
),

tasks AS (  -- where labels of tasks are ranks, so are the numbers by which srun or mpirun speaks of them
    SELECT run_id, task, min(rank) AS rank FROM rank_map WHERE origin = 'task' GROUP BY run_id, task HAVING count(DISTINCT rank) = 1
),

mpi AS (  -- DeepSpeed took its ranks from MPI (deepspeed/comm/comm.py, mpi_discovery)
    SELECT DISTINCT run_id FROM process WHERE statement = 'mpi_world'
),

named AS (
    SELECT v.name, v.code FROM (
        VALUES
        ('Killed', -9), ('Segmentation fault', -11), ('Aborted', -6), ('Bus error', -7), ('Floating point exception', -8),
        ('Illegal instruction', -4), ('SIGKILL', -9), ('SIGSEGV', -11), ('SIGABRT', -6), ('SIGBUS', -7), ('SIGTERM', -15), ('Terminated', -15)
    ) AS v (name, code)
),

resolved AS (
    SELECT
        e.run_id, e.source, e.line, e.part,
        CASE
            WHEN said.time IS NOT NULL THEN said.time
            WHEN e.clock <> 'day' OR e.clock IS NULL THEN e.time
            WHEN y.year IS NOT NULL
                THEN epoch_ns(
                    make_timestamp(e.time // 1000) + (y.year - 1972) * INTERVAL 1 YEAR
                ) + e.time % 1000
        END AS time,
        CASE WHEN said.time IS NOT NULL THEN 'local' WHEN e.clock <> 'day' THEN e.clock WHEN e.clock = 'day' AND y.year IS NOT NULL THEN 'year' END AS clock,
        e.kind, e.role,
        coalesce(e.rank, m.rank, pids.rank, devices.rank, tasks.rank, CASE WHEN mpi.run_id IS NOT NULL THEN e.task END) AS rank,
        pids.rank IS NOT NULL AS by_pid,
        e.local_rank, e.host, e.pid, e.attempt, e.step, e.after_step,
        CASE WHEN e.kind = 'oom' AND e.name = 'device' AND e.bytes IS NULL AND pinning.line IS NOT NULL THEN 'pinned' ELSE e.name END AS name,
        CASE WHEN e.kind IN ('exit', 'signal', 'data_worker') THEN coalesce(e.code, -CAST(coalesce(e.detail ->> '$.signal', e.detail ->> '$.signal_1', e.detail ->> '$.signal_2', e.detail ->> '$.signal_3') AS BIGINT), named.code) ELSE e.code END AS code, e.bytes, e.duration, e.message, e.detail
    FROM event AS e
    LEFT JOIN pids ON e.run_id = pids.run_id AND e.pid = pids.pid AND e.host IS NOT DISTINCT FROM pids.host
    LEFT JOIN devices
        ON
            e.kind IN ('xid', 'throttle', 'ecc') AND e.run_id = devices.run_id AND e.host IS NOT DISTINCT FROM devices.host
            AND (e.detail ->> '$.pci') IS NOT DISTINCT FROM devices.pci
            AND TRY_CAST(e.detail ->> '$.device' AS INTEGER) IS NOT DISTINCT FROM devices.device
    LEFT JOIN rank_map AS m
        ON
            e.run_id = m.run_id AND e.source = m.source AND e.local_rank IS NOT DISTINCT FROM m.local_rank
            AND e.host IS NOT DISTINCT FROM m.host AND e.task IS NOT DISTINCT FROM m.task
    LEFT JOIN run_year AS y ON e.run_id = y.run_id
    LEFT JOIN said ON e.run_id = said.run_id AND e.source = said.source AND e.line = said.line AND e.part IS NOT DISTINCT FROM said.part AND e.kind = said.kind
    LEFT JOIN tasks ON e.run_id = tasks.run_id AND e.task = tasks.task
    LEFT JOIN mpi ON e.run_id = mpi.run_id
    LEFT JOIN named ON e.name = named.name
    LEFT JOIN pinning
        ON e.run_id = pinning.run_id AND e.source = pinning.source AND e.line = pinning.line AND e.part IS NOT DISTINCT FROM pinning.part
),

-- How far a record of the machine lies outside the time of the run; 0 where that cannot be said.
placed AS (
    SELECT
        r.run_id, r.source, r.line, r.part, r.time, r.clock, r.kind, r.role, r.rank, r.by_pid, r.local_rank, r.host, r.pid,
        r.attempt, r.step, r.after_step, r.name, r.code, r.bytes, r.duration, r.message, r.detail,
        w.source IS NULL AS foreign_file,
        coalesce(w.stepped, FALSE) AS stepped,
        s.zoned AND r.clock = 'utc' AS zoned,
        CASE
            WHEN w.source IS NULL AND r.kind IN ('oom', 'xid', 'sxid', 'hardware', 'signal', 'ecc', 'throttle')
                THEN coalesce(greatest(s.started - r.time, r.time - s.ended, 0), 0)
            ELSE 0
        END AS outside
    FROM resolved AS r
    LEFT JOIN written AS w ON r.run_id = w.run_id AND r.source = w.source
    LEFT JOIN spans AS s ON r.run_id = s.run_id
)

SELECT
    e.run_id, e.source, e.line, e.part,
    CASE WHEN e.outside <= 900000000000 OR e.kind IN ('ecc', 'throttle') THEN e.time END AS time,
    CASE WHEN e.outside <= 900000000000 OR e.kind IN ('ecc', 'throttle') THEN e.clock ELSE 'other' END AS clock,
    e.kind, e.role, e.rank, e.local_rank, e.host, e.pid,
    e.attempt, e.step,
    CASE
        WHEN e.step IS NULL
            THEN coalesce(
                e.after_step, p.last_step, near.step,
                -- In files without steps. Who ends takes the run along: unless it was restarted, that is where it ends.
                CASE
                    WHEN e.stepped THEN NULL
                    WHEN e.foreign_file AND e.rank IS NULL THEN NULL
                    WHEN e.kind = 'exit' AND e.code = 0 THEN NULL
                    WHEN e.kind IN ('oom', 'signal', 'exit', 'exception', 'node_loss') AND reached.attempts <= 1 THEN reached.last_step
                    WHEN e.kind IN ('oom', 'xid', 'signal', 'exit', 'exception', 'node_loss') AND e.outside <= 900000000000 THEN timed.step
                END
            )
    END AS after_step,
    e.name, e.code, e.bytes, e.duration, e.message, e.detail
FROM placed AS e
LEFT JOIN rank_progress AS p ON e.run_id = p.run_id AND e.rank = p.rank
LEFT JOIN near
    ON e.run_id = near.run_id AND e.source = near.source AND e.line = near.line AND e.part IS NOT DISTINCT FROM near.part AND e.kind = near.kind
LEFT JOIN reached ON e.run_id = reached.run_id
LEFT JOIN timed ON e.run_id = timed.run_id AND e.source = timed.source AND e.line = timed.line AND e.part IS NOT DISTINCT FROM timed.part
WHERE
    CASE
        WHEN e.outside <= 900000000000 THEN TRUE  -- a quarter of an hour: clocks that nobody sets, and what a run writes last
        WHEN e.kind IN ('ecc', 'throttle') THEN e.rank IS NOT NULL OR e.outside <= 86400000000000
        WHEN e.zoned OR e.outside > 51300000000000 THEN FALSE  -- zones lie within 14 hours of each other
        ELSE e.by_pid OR e.kind IN ('oom', 'xid', 'sxid')
    END
