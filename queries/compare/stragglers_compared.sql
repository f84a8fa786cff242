/*---
title = "Whom the others waited for, before and after"
doc   = """
From profiler traces of several ranks, one row per rank that held up the others in a profiled step of one of the runs: what
it typically cost them per step (the median over the profiled steps in which it meets others, which a single late step does
not move; a step whose matches are not trusted counts as none), and in how many of the steps it cost them most. Who is to blame says the finding trace_straggler, not the order of these rows."""
reads = ["aligned_collective", "trace_blame", "trace_file"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
most = { type = "INTEGER", default = 8, doc = "Rows at most." }
[returns]
rank = "INTEGER"
before_host = "VARCHAR"
after_host = "VARCHAR"
before_led = "BIGINT"
after_led = "BIGINT"
before_steps = "BIGINT"
after_steps = "BIGINT"
before_ms = "DOUBLE"
after_ms = "DOUBLE"
[[case]]
name = "rank 1 holds up every step before, and one of three after"
given.trace_file = """
run_id | rank | host
before | 0    | a
before | 1    | b
after  | 0    | a
after  | 1    | c
"""
given.aligned_collective = """
run_id | step | rank
before | 1    | 0
before | 1    | 1
before | 2    | 0
before | 2    | 1
after  | 1    | 0
after  | 1    | 1
after  | 2    | 0
after  | 2    | 1
after  | 3    | 0
after  | 3    | 1
"""
given.trace_blame = """
run_id | step | rank | caused
before | 1    | 0    | 1000000
before | 1    | 1    | 5000000
before | 2    | 0    | 0
before | 2    | 1    | 3000000
after  | 1    | 0    | 0
after  | 1    | 1    | 9000000
"""
expect = """
rank | before_host | after_host | before_led | after_led | before_steps | after_steps | before_ms | after_ms
1    | b           | c          | 2          | 1         | 2            | 3           | 4         | 0
0    | a           | a          | 0          | 0         | 2            | 3           | 0.5       | 0
"""
[[case]]
name = "nobody waits"
given.trace_file = "run_id | rank"
given.trace_blame = """
run_id | step | rank | caused
before | 1    | 0    | 0
after  | 1    | 1    | 0
"""
expect = "rank"
---*/
WITH met AS (
    SELECT DISTINCT run_id, step, rank
    FROM aligned_collective
    WHERE run_id IN ($before, $after) AND step IS NOT NULL
),

profiled AS (
    SELECT run_id, count(DISTINCT step) AS steps FROM met GROUP BY run_id
),

judged AS (
    SELECT
        m.run_id, m.step, m.rank,
        coalesce(b.caused, 0) AS caused,
        b.caused > 0 AND row_number() OVER (PARTITION BY m.run_id, m.step ORDER BY b.caused DESC NULLS LAST, m.rank) = 1 AS leads
    FROM met AS m
    LEFT JOIN trace_blame AS b ON m.run_id = b.run_id AND m.step = b.step AND m.rank = b.rank
),

held AS (
    SELECT run_id, rank, count(*) FILTER (WHERE leads) AS led, median(caused) / 1000000 AS ms, max(caused) AS most
    FROM judged
    GROUP BY run_id, rank
),

host AS (
    SELECT run_id, rank, any_value(host) AS host FROM trace_file GROUP BY run_id, rank
),

side AS (
    SELECT
        h.rank,
        any_value(o.host) FILTER (WHERE h.run_id = $before) AS before_host,
        any_value(o.host) FILTER (WHERE h.run_id = $after) AS after_host,
        any_value(h.led) FILTER (WHERE h.run_id = $before) AS before_led,
        any_value(h.led) FILTER (WHERE h.run_id = $after) AS after_led,
        any_value(h.ms) FILTER (WHERE h.run_id = $before) AS before_ms,
        any_value(h.ms) FILTER (WHERE h.run_id = $after) AS after_ms
    FROM held AS h
    LEFT JOIN host AS o ON h.run_id = o.run_id AND h.rank = o.rank
    GROUP BY h.rank
    HAVING max(h.most) > 0
)

SELECT
    rank, before_host, after_host, before_led, after_led,
    (SELECT steps FROM profiled WHERE run_id = $before) AS before_steps,
    (SELECT steps FROM profiled WHERE run_id = $after) AS after_steps,
    before_ms, after_ms
FROM side
ORDER BY greatest(coalesce(before_ms, 0), coalesce(after_ms, 0)) DESC, coalesce(before_led, 0) + coalesce(after_led, 0) DESC, rank
LIMIT $most
