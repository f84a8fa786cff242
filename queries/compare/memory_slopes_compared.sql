/*---
title = "Memory growth per rank and kind in two runs"
doc   = "Slope of the lower envelope in bytes per step with its interval, the word for it (growing, flat or undecided) and why. `room`: bytes left on the device at the end, where its size is known; `seconds`: typical step time, so that steps to a full device turn into hours."
reads = ["memory_series", "memory", "step_times"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
rank = "INTEGER"
kind = "VARCHAR"
before_kind = "VARCHAR"
before_slope = "DOUBLE"
before_low = "DOUBLE"
before_high = "DOUBLE"
before_steps = "BIGINT"
before_why = "VARCHAR"
before_rise = "DOUBLE"
before_first_half = "DOUBLE"
before_second_half = "DOUBLE"
before_room = "DOUBLE"
before_seconds = "DOUBLE"
after_kind = "VARCHAR"
after_slope = "DOUBLE"
after_low = "DOUBLE"
after_high = "DOUBLE"
after_steps = "BIGINT"
after_why = "VARCHAR"
after_rise = "DOUBLE"
after_first_half = "DOUBLE"
after_second_half = "DOUBLE"
after_room = "DOUBLE"
after_seconds = "DOUBLE"
[[case]]
name = "memory of the before-run only"
given.memory_series = """
run_id | rank | kind     | step | bytes
before | 0    | host_rss | 1    | 100
before | 0    | host_rss | 2    | 100
"""
expect = """
rank | kind     | before_steps | after_kind | after_steps
0    | host_rss | 2            |            |
"""
[[case]]
name = "every step adds 1 MB to a device of 20 MB, printed every other step"
given.memory_series = """
run_id | rank | kind             | step | bytes
before | 0    | device_allocated | 2    | 2000000
before | 0    | device_allocated | 4    | 4000000
before | 0    | device_allocated | 6    | 6000000
before | 0    | device_allocated | 8    | 8000000
before | 0    | device_allocated | 10   | 10000000
before | 0    | device_allocated | 12   | 12000000
before | 0    | device_allocated | 14   | 14000000
before | 0    | device_allocated | 16   | 16000000
before | 0    | device_allocated | 18   | 18000000
"""
given.memory = """
run_id | kind         | bytes
before | device_total | 20000000
"""
given.step_times = """
run_id | step | seconds
before | 1    | 0.5
"""
expect = """
kind             | before_kind | before_slope | before_steps | before_room | before_seconds
device_allocated | growing     | 1000000      | 9            | 2000000     | 0.5
"""
---*/
WITH series AS (
    SELECT
        run_id, rank, kind,
        growth(list(CAST(bytes AS DOUBLE) ORDER BY step)) AS g,
        (max(step) - min(step)) / (count(*) - 1) AS stride,
        count(*) AS steps,
        arg_max(bytes, step) AS final
    FROM memory_series
    WHERE run_id IN ($before, $after)
    GROUP BY run_id, rank, kind
    HAVING count(*) > 1
),

sizes AS (
    SELECT run_id, max(bytes) AS total FROM memory WHERE kind = 'device_total' GROUP BY run_id
),

typical AS (
    SELECT run_id, median(seconds) AS seconds FROM step_times GROUP BY run_id
),

slopes AS (
    SELECT
        s.run_id, s.rank, s.kind, s.steps,
        {
            'kind': g.kind, 'slope': g.slope / stride, 'low': g.low / stride, 'high': g.high / stride,
            'why': g.why, 'rise': g.rise,
            'first_half': g.first_half_slope / stride, 'second_half': g.second_half_slope / stride
        } AS g,
        CAST(CASE WHEN s.kind LIKE 'device_%' THEN z.total - s.final END AS DOUBLE) AS room,
        t.seconds
    FROM series AS s
    LEFT JOIN sizes AS z ON s.run_id = z.run_id
    LEFT JOIN typical AS t ON s.run_id = t.run_id
)

SELECT
    coalesce(a.rank, b.rank) AS rank,
    coalesce(a.kind, b.kind) AS kind,
    a.g.kind AS before_kind, a.g.slope AS before_slope, a.g.low AS before_low, a.g.high AS before_high,
    a.steps AS before_steps, a.g.why AS before_why, a.g.rise AS before_rise,
    a.g.first_half AS before_first_half, a.g.second_half AS before_second_half,
    a.room AS before_room, a.seconds AS before_seconds,
    b.g.kind AS after_kind, b.g.slope AS after_slope, b.g.low AS after_low, b.g.high AS after_high,
    b.steps AS after_steps, b.g.why AS after_why, b.g.rise AS after_rise,
    b.g.first_half AS after_first_half, b.g.second_half AS after_second_half,
    b.room AS after_room, b.seconds AS after_seconds
FROM (SELECT run_id, rank, kind, steps, g, room, seconds FROM slopes WHERE run_id = $before) AS a
FULL JOIN (SELECT run_id, rank, kind, steps, g, room, seconds FROM slopes WHERE run_id = $after) AS b
    ON a.rank IS NOT DISTINCT FROM b.rank AND a.kind = b.kind
ORDER BY coalesce(a.kind, b.kind), coalesce(a.rank, b.rank)
