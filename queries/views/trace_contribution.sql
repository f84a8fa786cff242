/*---
title = "What each operator and kernel contributes to the time of a step"
doc = """
One row per rank, step, phase and name; the durations of a step add up to its duration exactly, as in trace_phase, which
splits the same time by phase only. Within a phase a moment belongs to the event that began first, so an operator stands
for those that it calls. `count` is the number of events that contribute.
"""
reads = ["trace_step", "trace_activity", "trace_phase"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
phase = "VARCHAR"
name = "VARCHAR"
duration = "BIGINT"
count = "BIGINT"
[[case]]
name = "a kernel hides the operator below it"
given.trace_step = """
source | rank | step | start_time | end_time | duration
a      | 0    | 1    | 100        | 200      | 100
"""
given.trace_activity = """
source | rank | level | activity     | event | name     | start_time | end_time
a      | 0    | 1     | gpu compute  | 1     | gemm     | 110        | 130
a      | 0    | 1     | gpu compute  | 2     | relu     | 120        | 140
a      | 0    | 7     | cpu operator | 3     | aten::mm | 105        | 150
a      | 0    | 7     | cpu operator | 4     | aten::t  | 106        | 110
a      | 0    | 7     | cpu operator | 5     | aten::x  | 190        | 210
"""
given.trace_phase = """
source | rank | step | phase | duration | step_duration
a      | 0    | 1    | other | 45       | 100
"""
expect = """
step | phase        | name     | duration | count
1    | other        |          | 45       |
1    | gpu compute  | gemm     | 20       | 1
1    | cpu operator | aten::mm | 15       | 1
1    | cpu operator | aten::x  | 10       | 1
1    | gpu compute  | relu     | 10       | 1
"""
---*/
WITH clipped AS (
    SELECT
        s.run_id, s.source, s.rank, s.step, a.level, a.activity, a.event, a.name,
        greatest(a.start_time, s.start_time) AS start_time,
        least(a.end_time, s.end_time) AS end_time
    FROM trace_step AS s
    INNER JOIN trace_activity AS a
        ON
            a.run_id = s.run_id AND a.source = s.source
            AND a.start_time < s.end_time AND a.end_time > s.start_time
),

-- What is left of each event beside those of its own level that began earlier.
own AS (
    SELECT
        run_id, source, rank, step, level, activity, event, name, end_time,
        greatest(start_time, coalesce(max(end_time) OVER (
            PARTITION BY run_id, source, step, level
            ORDER BY start_time, end_time DESC, event ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_time)) AS start_time
    FROM clipped
),

piece AS (
    SELECT run_id, source, rank, step, level, activity, event, name, start_time, end_time
    FROM own
    WHERE end_time > start_time
),

-- Time covered by the levels below, as a function of time: stretches with the length covered before each.
marked AS (
    SELECT
        p.run_id, p.source, p.step, l.level, p.start_time, p.end_time,
        max(p.end_time) OVER (
            PARTITION BY p.run_id, p.source, p.step, l.level
            ORDER BY p.start_time, p.end_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before
    FROM piece AS p
    INNER JOIN range(2, 8) AS l (level) ON p.level < l.level
),

numbered AS (
    SELECT
        run_id, source, step, level, start_time, end_time,
        sum(CASE WHEN before >= start_time THEN 0 ELSE 1 END) OVER (
            PARTITION BY run_id, source, step, level ORDER BY start_time, end_time
        ) AS stretch
    FROM marked
),

stretch AS (
    SELECT run_id, source, step, level, min(start_time) AS start_time, max(end_time) AS end_time
    FROM numbered
    GROUP BY run_id, source, step, level, stretch
),

curve AS (
    SELECT
        run_id, source, step, level, start_time, end_time,
        coalesce(sum(end_time - start_time) OVER (
            PARTITION BY run_id, source, step, level
            ORDER BY start_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS covered
    FROM stretch
),

begun AS (
    SELECT
        p.run_id, p.source, p.rank, p.step, p.level, p.activity, p.event, p.name, p.start_time, p.end_time,
        coalesce(c.covered + least(p.start_time, c.end_time) - c.start_time, 0) AS hidden_before
    FROM piece AS p
    ASOF LEFT JOIN curve AS c
        ON
            c.run_id = p.run_id AND c.source = p.source AND c.step = p.step AND c.level = p.level
            AND c.start_time <= p.start_time
),

shown AS (
    SELECT
        b.run_id, b.source, b.rank, b.step, b.activity, b.level, b.name,
        b.end_time - b.start_time
        - (coalesce(c.covered + least(b.end_time, c.end_time) - c.start_time, 0) - b.hidden_before) AS duration
    FROM begun AS b
    ASOF LEFT JOIN curve AS c
        ON
            c.run_id = b.run_id AND c.source = b.source AND c.step = b.step AND c.level = b.level
            AND c.start_time <= b.end_time
)

SELECT
    run_id, source, rank, step, activity AS phase, name,
    CAST(sum(duration) AS BIGINT) AS duration,
    count(*) AS count
FROM shown
WHERE duration > 0
GROUP BY run_id, source, rank, step, activity, level, name
UNION ALL
SELECT run_id, source, rank, step, phase, NULL AS name, duration, NULL AS count
FROM trace_phase
WHERE phase = 'other'
ORDER BY run_id, rank, source, step, duration DESC, phase, name
