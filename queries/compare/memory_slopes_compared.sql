/*---
title = "Memory growth per rank and kind in two runs"
doc   = "Slope of the lower envelope in bytes per step with its interval, the word for it (growing, flat or undecided) and why. `room`: bytes left on the device at the end, where its size is known; `seconds`: typical step time, so that steps to a full device turn into hours."
reads = ["memory_slope", "memory", "step_times"]
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
given.memory_slope = """
run_id | rank | kind     | word | steps
before | 0    | host_rss | flat | 2
"""
expect = """
rank | kind     | before_kind | before_steps | after_kind | after_steps
0    | host_rss | flat        | 2            |            |
"""
[[case]]
name = "every step adds 1 MB to a device of 20 MB; the host's size is not known"
given.memory_slope = """
run_id | rank | kind             | word    | slope   | steps | final
before | 0    | device_allocated | growing | 1000000 | 9     | 18000000
after  | 0    | device_allocated | flat    | 0       | 9     | 2000000
before | 0    | host_rss         | growing | 1000000 | 9     | 18000000
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
kind             | before_kind | before_slope | before_steps | before_room | before_seconds | after_kind
device_allocated | growing     | 1000000      | 9            | 2000000     | 0.5            | flat
host_rss         | growing     | 1000000      | 9            |             | 0.5            |
"""
---*/
WITH sizes AS (
    SELECT run_id, max(bytes) AS total FROM memory WHERE kind = 'device_total' GROUP BY run_id
),

typical AS (
    SELECT run_id, median(seconds) AS seconds FROM step_times GROUP BY run_id
),

slopes AS (
    SELECT
        s.run_id, s.rank, s.kind, s.word, s.slope, s.low, s.high, s.steps, s.why, s.rise, s.first_half, s.second_half,
        CAST(CASE WHEN s.kind LIKE 'device_%' THEN z.total - s.final END AS DOUBLE) AS room,
        t.seconds
    FROM memory_slope AS s
    LEFT JOIN sizes AS z ON s.run_id = z.run_id
    LEFT JOIN typical AS t ON s.run_id = t.run_id
),

a AS (
    SELECT rank, kind, word, slope, low, high, steps, why, rise, first_half, second_half, room, seconds
    FROM slopes
    WHERE run_id = $before
),

b AS (
    SELECT rank, kind, word, slope, low, high, steps, why, rise, first_half, second_half, room, seconds
    FROM slopes
    WHERE run_id = $after
)

SELECT
    coalesce(a.rank, b.rank) AS rank,
    coalesce(a.kind, b.kind) AS kind,
    a.word AS before_kind, a.slope AS before_slope, a.low AS before_low, a.high AS before_high,
    a.steps AS before_steps, a.why AS before_why, a.rise AS before_rise,
    a.first_half AS before_first_half, a.second_half AS before_second_half,
    a.room AS before_room, a.seconds AS before_seconds,
    b.word AS after_kind, b.slope AS after_slope, b.low AS after_low, b.high AS after_high,
    b.steps AS after_steps, b.why AS after_why, b.rise AS after_rise,
    b.first_half AS after_first_half, b.second_half AS after_second_half,
    b.room AS after_room, b.seconds AS after_seconds
FROM a
FULL JOIN b ON a.rank IS NOT DISTINCT FROM b.rank AND a.kind = b.kind
ORDER BY coalesce(a.kind, b.kind), coalesce(a.rank, b.rank)
