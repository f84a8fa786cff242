/*---
title = "Collectives matched across ranks, on one clock"
doc = """
One row per rank of each collective that at least two ranks show: when the rank arrived, how long it waited for the last
one, how long the transfer took. Operations are matched by process group and sequence number where all state them, else by
profiled step, kind and order. The match is trusted if the ends agree (within 50 us, or a quarter of the spread of the
starts) and nobody left before the last one came (but for 20 us and what the clocks leave open). Ranks whose clock is
unknown are left out, and so are traces of two processes that claim one rank at the same time.
"""
reads = ["trace_collective", "trace_clock", "trace_doubled"]
materialize = true
[returns]
run_id = "VARCHAR"
collective = "BIGINT"
step = "BIGINT"
backend = "VARCHAR"
kind = "VARCHAR"
group_name = "VARCHAR"
group_size = "BIGINT"
sequence = "BIGINT"
method = "VARCHAR"
ranks = "BIGINT"
rank = "INTEGER"
source = "VARCHAR"
event = "BIGINT"
start_time = "BIGINT"
end_time = "BIGINT"
wait = "BIGINT"
transfer = "BIGINT"
start_spread = "BIGINT"
end_spread = "BIGINT"
lead = "BIGINT"
uncertainty = "BIGINT"
last_rank = "INTEGER"
is_last = "BOOLEAN"
trusted = "BOOLEAN"
[[case]]
name = "rank 1 comes last; a second operation whose ends disagree is not trusted"
given.trace_collective = """
source | rank | step | span | backend | kind      | ordinal | method         | start_time | end_time
a      | 0    | 1    | 0    | nccl    | allreduce | 1       | step and order | 0          | 900000
b      | 1    | 1    | 0    | nccl    | allreduce | 1       | step and order | 800000     | 901000
c      | 2    | 1    | 0    | nccl    | allreduce | 1       | step and order | 300000     | 900000
a      | 0    | 1    | 0    | nccl    | allreduce | 2       | step and order | 950000     | 960000
b      | 1    | 1    | 0    | nccl    | allreduce | 2       | step and order | 1950000    | 1960000
"""
given.trace_clock = """
source | rank | status    | offset_ns | drift | reference_time | uncertainty
a      | 0    | reference | 0         | 0     | 0              | 0
b      | 1    | reference | 0         | 0     | 0              | 0
c      | 2    | reference | 0         | 0     | 0              | 0
"""
expect = """
collective | rank | ranks | start_time | wait   | transfer | start_spread | end_spread | lead   | is_last | last_rank | trusted
1          | 0    | 3     | 0          | 800000 | 100000   | 800000       | 1000       | 500000 | false   | 1         | true
1          | 1    | 3     | 800000     | 0      | 101000   | 800000       | 1000       | 500000 | true    | 1         | true
1          | 2    | 3     | 300000     | 500000 | 100000   | 800000       | 1000       | 500000 | false   | 1         | true
2          | 0    | 2     | 950000     | 1000000 | 0       | 1000000      | 1000000    | 1000000 | false  | 1         | false
2          | 1    | 2     | 1950000    | 0      | 10000    | 1000000      | 1000000    | 1000000 | true   | 1         | false
"""
[[case]]
name = "a rank that lacks the first operation meets the others' second: they had left before it came"
given.trace_collective = """
source | rank | step | span | backend | kind      | ordinal | start_time | end_time
a      | 0    | 1    | 0    | nccl    | allreduce | 1       | 0          | 10000000
b      | 1    | 1    | 0    | nccl    | allreduce | 1       | 9900000    | 10000000
c      | 2    | 1    | 0    | nccl    | allreduce | 1       | 11000000   | 12000000
"""
given.trace_clock = """
source | rank | status    | offset_ns | drift | reference_time | uncertainty
a      | 0    | reference | 0         | 0     | 0              | 0
b      | 1    | reference | 0         | 0     | 0              | 0
c      | 2    | reference | 0         | 0     | 0              | 0
"""
expect = """
rank | last_rank | trusted
0    | 2         | false
1    | 2         | false
2    | 2         | false
"""
[[case]]
name = "two processes claim rank 1 at once: nobody knows which of them it is"
given.trace_doubled = """
source | other
b      | c
"""
given.trace_collective = """
source | rank | step | span | backend | kind      | ordinal | start_time | end_time
a      | 0    | 1    | 0    | nccl    | allreduce | 1       | 0          | 90
b      | 1    | 1    | 0    | nccl    | allreduce | 1       | 80         | 90
d      | 2    | 1    | 0    | nccl    | allreduce | 1       | 10         | 90
c      | 1    | 2    | 0    | nccl    | allreduce | 1       | 100        | 140
a      | 0    | 2    | 0    | nccl    | allreduce | 1       | 90         | 140
"""
given.trace_clock = """
source | rank | status    | offset_ns | drift | reference_time | uncertainty
a      | 0    | reference | 0         | 0     | 0              | 0
b      | 1    | reference | 0         | 0     | 0              | 0
c      | 1    | reference | 0         | 0     | 0              | 0
d      | 2    | reference | 0         | 0     | 0              | 0
"""
expect = """
step | rank | ranks | last_rank
1    | 0    | 2     | 2
1    | 2    | 2     | 2
"""
[[case]]
name = "a rank whose clock is a second ahead is moved back; one with an unknown clock is left out"
given.trace_collective = """
source | rank | step | span | backend | kind      | ordinal | method         | start_time | end_time
a      | 0    | 1    | 0    | nccl    | allreduce | 1       | step and order | 0          | 900000
b      | 1    | 1    | 0    | nccl    | allreduce | 1       | step and order | 1000800000 | 1000900000
c      | 2    | 1    | 0    | nccl    | allreduce | 1       | step and order | 300000     | 900000
"""
given.trace_clock = """
source | rank | status    | offset_ns  | drift | reference_time | uncertainty
a      | 0    | reference | 0          | 0     | 0              | 0
b      | 1    | estimated | 1000000000 | 0     | 0              | 2000
c      | 2    | unknown   |            |       | 0              |
"""
expect = """
rank | ranks | start_time | last_rank | uncertainty
0    | 2     | 0          | 1         | 2000
1    | 2     | 800000     | 1         | 2000
"""
---*/
WITH doubled AS (
    SELECT run_id, source FROM trace_doubled
    UNION
    SELECT run_id, other FROM trace_doubled
),

corrected AS (
    SELECT
        c.run_id, c.source, c.rank, c.event, c.step, c.backend, c.kind, c.group_name, c.group_size, c.sequence, c.method,
        c.start_time - k.offset_ns
        - CAST(k.drift * (c.start_time - k.reference_time) AS BIGINT) AS start_time,
        c.end_time - k.offset_ns - CAST(k.drift * (c.end_time - k.reference_time) AS BIGINT) AS end_time,
        k.uncertainty,
        hash(c.span, c.step, c.match_group, c.backend, c.kind, c.ordinal) AS key
    FROM trace_collective AS c
    INNER JOIN trace_clock AS k
        ON
            k.run_id = c.run_id AND k.source = c.source
            AND coalesce(c.start_time >= k.from_time, TRUE) AND coalesce(c.start_time < k.until_time, TRUE)
    ANTI JOIN doubled AS d ON d.run_id = c.run_id AND d.source = c.source
    WHERE c.rank IS NOT NULL AND k.offset_ns IS NOT NULL
),

single AS (
    SELECT
        run_id, source, rank, event, step, backend, kind, group_name, group_size, sequence, method,
        start_time, end_time, uncertainty, key
    FROM corrected
    QUALIFY row_number() OVER (PARTITION BY run_id, key, rank ORDER BY start_time, source) = 1
),

matched AS (
    SELECT
        run_id, key,
        count(*) AS ranks,
        max(start_time) AS last_start,
        max(start_time) - min(start_time) AS start_spread,
        min(end_time) AS first_end,
        max(end_time) - min(end_time) AS end_spread,
        arg_max(rank, start_time) AS last_rank,
        max(start_time) - list_sort(list(start_time))[-2] AS lead,
        max(uncertainty) AS uncertainty,
        max(group_size) AS group_size
    FROM single
    GROUP BY run_id, key
    HAVING count(*) >= 2
)

SELECT
    s.run_id,
    dense_rank() OVER (PARTITION BY s.run_id ORDER BY m.last_start, s.key) AS collective,
    s.step, s.backend, s.kind, s.group_name, m.group_size, s.sequence, s.method, m.ranks,
    s.rank, s.source, s.event, s.start_time, s.end_time,
    m.last_start - s.start_time AS wait,
    greatest(s.end_time - m.last_start, 0) AS transfer,
    m.start_spread, m.end_spread, m.lead, m.uncertainty,
    m.last_rank,
    s.rank = m.last_rank AS is_last,
    m.end_spread <= greatest(50000, m.start_spread // 4)
    AND m.first_end >= m.last_start - 20000 - 2 * m.uncertainty AS trusted
FROM single AS s
INNER JOIN matched AS m ON m.run_id = s.run_id AND m.key = s.key
ORDER BY s.run_id, collective, s.rank
