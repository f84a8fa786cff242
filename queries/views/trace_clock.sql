/*---
title = "How far each rank's clock is off, with its uncertainty"
doc = """
Ranks of one host share a clock, unless a trace does not state what its times are relative to: that is a clock of its own.
Between clocks, the ends of common collectives tell the offset: on one clock they agree to
a few microseconds. The offset to the clock of the lowest rank (whose times are absolute, if any are) is the median of the differences of ends; its drift is the
Theil-Sen slope where at least 20 collectives span at least half a second. Drift itself changes, with temperature or when a
clock is set; so long traces are cut into up to 16 windows of at least 60 common collectives and on average a second, one row
each, from `from_time` to before `until_time` of the rank's own clock (null: without end). `uncertainty` is twice the robust
spread of what is left, and at least 2 us. Where no host is stated each rank counts as a clock of its own, and offsets within
20 us or within their uncertainty are taken for none. With fewer than 5 common collectives a clock stays unknown, and its
ranks are not put beside others. corrected time = time - offset - drift * (time - reference).
"""
reads = ["trace_file", "trace_collective"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
clock = "VARCHAR"
status = "VARCHAR"
from_time = "BIGINT"
until_time = "BIGINT"
offset_ns = "BIGINT"
drift = "DOUBLE"
reference_time = "BIGINT"
uncertainty = "BIGINT"
collectives = "BIGINT"
[[case]]
name = "one host, one clock"
given.trace_file = """
source | rank | host | start
a      | 0    | h    | 0
b      | 1    | h    | 0
"""
expect = """
source | rank | clock | status    | offset_ns | drift | uncertainty | collectives
a      | 0    | h     | reference | 0         | 0     | 0           |
b      | 1    | h     | reference | 0         | 0     | 0           |
"""
[[case]]
name = "a trace whose times are relative to something unknown shares no clock and is no reference"
given.trace_file = """
source | rank | host | clock    | start
a      | 0    | h    | relative | 0
b      | 1    | h    | base     | 0
c      | 2    | h    | base     | 0
"""
expect = """
source | rank | clock | status    | offset_ns | uncertainty
a      | 0    | a     | unknown   |           |
b      | 1    | h     | reference | 0         | 0
c      | 2    | h     | reference | 0         | 0
"""
[[case]]
name = "two hosts, the second one second ahead; a third with too little in common"
given.trace_file = """
source | rank | host | start
a      | 0    | h    | 0
b      | 1    | i    | 0
c      | 2    | j    | 0
"""
given.trace_collective = """
source | rank | host | step | backend | kind      | span | ordinal | start_time | end_time
a      | 0    | h    | 1    | nccl    | allreduce | 0    | 1       | 0          | 100000
a      | 0    | h    | 2    | nccl    | allreduce | 0    | 1       | 0          | 200000
a      | 0    | h    | 3    | nccl    | allreduce | 0    | 1       | 0          | 300000
a      | 0    | h    | 4    | nccl    | allreduce | 0    | 1       | 0          | 400000
a      | 0    | h    | 5    | nccl    | allreduce | 0    | 1       | 0          | 500000
b      | 1    | i    | 1    | nccl    | allreduce | 0    | 1       | 0          | 1000101000
b      | 1    | i    | 2    | nccl    | allreduce | 0    | 1       | 0          | 1000200000
b      | 1    | i    | 3    | nccl    | allreduce | 0    | 1       | 0          | 1000300000
b      | 1    | i    | 4    | nccl    | allreduce | 0    | 1       | 0          | 1000399000
b      | 1    | i    | 5    | nccl    | allreduce | 0    | 1       | 0          | 1000500000
c      | 2    | j    | 5    | nccl    | allreduce | 0    | 1       | 0          | 500000
"""
expect = """
source | rank | clock | status    | offset_ns  | drift | uncertainty | collectives
a      | 0    | h     | reference | 0          | 0     | 0           |
b      | 1    | i     | estimated | 1000000000 | 0     | 2000        | 5
c      | 2    | j     | unknown   |            |       |             | 1
"""
---*/
WITH member AS (
    SELECT
        run_id, source, rank, host,
        own AS clock,
        first_value(own) OVER (PARTITION BY run_id ORDER BY unanchored, rank, source) AS reference_clock
    FROM (
        SELECT
            run_id, source, rank, host, "start",
            coalesce(clock = 'relative', FALSE) AS unanchored,
            CASE WHEN clock = 'relative' THEN source ELSE coalesce(host, 'rank ' || rank) END AS own
        FROM trace_file
    )
    WHERE rank IS NOT NULL AND "start" IS NOT NULL
),

ending AS (
    SELECT
        c.run_id, m.clock, m.reference_clock,
        c.span, c.step, c.match_group, c.backend, c.kind, c.ordinal,
        CAST(median(c.end_time) AS BIGINT) AS end_time
    FROM trace_collective AS c
    INNER JOIN member AS m ON m.run_id = c.run_id AND m.source = c.source
    WHERE c.kind NOT IN ('broadcast', 'reduce', 'gather', 'scatter', 'send', 'recv')
    GROUP BY ALL
),

common AS (
    SELECT
        e.run_id, e.clock, e.end_time - r.end_time AS apart, e.end_time AS own_time,
        row_number() OVER (PARTITION BY e.run_id, e.clock ORDER BY e.end_time, r.end_time) - 1 AS place,
        count(*) OVER (PARTITION BY e.run_id, e.clock) AS collectives,
        least(
            16,
            count(*) OVER (PARTITION BY e.run_id, e.clock) // 60,
            (max(e.end_time) OVER (PARTITION BY e.run_id, e.clock) - min(e.end_time) OVER (PARTITION BY e.run_id, e.clock))
            // 1000000000
        ) AS windows
    FROM ending AS e
    INNER JOIN ending AS r
        ON
            r.run_id = e.run_id AND r.clock = e.reference_clock AND r.span = e.span AND r.step IS NOT DISTINCT FROM e.step
            AND r.match_group IS NOT DISTINCT FROM e.match_group AND r.backend = e.backend AND r.kind = e.kind
            AND r.ordinal = e.ordinal
    WHERE e.clock != e.reference_clock
),

difference AS (
    SELECT run_id, clock, apart, own_time, place, collectives, place * greatest(windows, 1) // collectives AS part
    FROM common
),

sample AS (  -- at most 200 of a window
    SELECT
        run_id, clock, part, own_time, apart,
        count(*) OVER (PARTITION BY run_id, clock, part) AS size
    FROM difference
    QUALIFY place % (1 + count(*) OVER (PARTITION BY run_id, clock, part) // 200) = 0
),

slope AS (
    SELECT a.run_id, a.clock, a.part, median((b.apart - a.apart) / CAST(b.own_time - a.own_time AS DOUBLE)) AS drift
    FROM sample AS a
    INNER JOIN sample AS b ON b.run_id = a.run_id AND b.clock = a.clock AND b.part = a.part AND b.own_time > a.own_time
    WHERE a.size >= 20
    GROUP BY a.run_id, a.clock, a.part
    HAVING max(b.own_time) - min(a.own_time) >= 500000000
),

centre AS (
    SELECT
        d.run_id, d.clock, d.part,
        coalesce(any_value(s.drift), 0) AS drift,
        CAST(median(d.own_time) AS BIGINT) AS reference_time,
        min(d.own_time) AS first_time,
        any_value(d.collectives) AS known,
        count(*) AS collectives
    FROM difference AS d
    LEFT JOIN slope AS s ON s.run_id = d.run_id AND s.clock = d.clock AND s.part = d.part
    GROUP BY d.run_id, d.clock, d.part
),

rest AS (
    SELECT
        d.run_id, d.clock, d.part,
        d.apart - CAST(c.drift * (d.own_time - c.reference_time) AS BIGINT) AS apart
    FROM difference AS d
    INNER JOIN centre AS c ON c.run_id = d.run_id AND c.clock = d.clock AND c.part = d.part
),

level AS (
    SELECT
        run_id, clock, part,
        CAST(median(apart) AS BIGINT) AS offset_ns,
        CAST(greatest(2000, 2 * 1.4826 * mad(apart)) AS BIGINT) AS uncertainty
    FROM rest
    GROUP BY run_id, clock, part
),

span AS (  -- windows end where the next one begins; the first and the last have no end
    SELECT
        c.run_id, c.clock, c.drift, c.reference_time, c.known, c.collectives, l.offset_ns, l.uncertainty,
        CASE WHEN c.part > 0 THEN c.first_time END AS from_time,
        lead(c.first_time) OVER (PARTITION BY c.run_id, c.clock ORDER BY c.part) AS until_time,
        bool_and(abs(l.offset_ns) <= greatest(20000, l.uncertainty)) OVER (PARTITION BY c.run_id, c.clock) AS near
    FROM centre AS c
    INNER JOIN level AS l ON l.run_id = c.run_id AND l.clock = c.clock AND l.part = c.part
),

judged AS (
    SELECT
        m.run_id, m.source, m.rank, m.clock, s.collectives, s.drift, s.reference_time, s.offset_ns, s.uncertainty,
        s.from_time, s.until_time,
        CASE
            WHEN m.clock = m.reference_clock THEN 'reference'
            WHEN coalesce(s.known, 0) < 5 THEN 'unknown'
            WHEN m.host IS NULL AND s.near THEN 'agrees'
            ELSE 'estimated'
        END AS status
    FROM member AS m
    LEFT JOIN span AS s ON s.run_id = m.run_id AND s.clock = m.clock
)

SELECT
    run_id, source, rank, clock, status, from_time, until_time,
    CASE status WHEN 'estimated' THEN offset_ns WHEN 'unknown' THEN NULL ELSE 0 END AS offset_ns,
    CASE status WHEN 'estimated' THEN drift WHEN 'unknown' THEN NULL ELSE 0 END AS drift,
    CASE WHEN status = 'estimated' THEN reference_time ELSE 0 END AS reference_time,
    CASE status WHEN 'reference' THEN 0 WHEN 'unknown' THEN NULL ELSE uncertainty END AS uncertainty,
    collectives
FROM judged
ORDER BY run_id, rank, source, from_time NULLS FIRST
