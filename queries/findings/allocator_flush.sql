/*---
title    = "The allocator flushed its cache"
doc      = "DeepSpeed's stage 3 counts how often PyTorch's allocator had to give its cache back and try again: memory is tight, and each flush costs time. Flushes that came as often before steps became slower do not explain it, and are left out."
fault    = "throughput"
severity = "evidence"
reads    = ["events", "step_change", "step_times"]
summary  = "cache flushes reported {times} times{since}"
[params]
often = { type = "DOUBLE", default = 0.5, doc = "Reports per step before the change, as a share of those after it, from which they are no news." }
[returns]
times = "BIGINT"
since = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "twice, in a run of steady steps"
given.events = """
kind        | rank | after_step | line
cache_flush | 0    | 3          | 5
cache_flush | 0    | 4          | 9
"""
expect = """
times | rank | step | line
2     | 0    | 3    | 5
"""
[[case]]
name = "as often before the change as after it"
given.events = """
kind        | rank | after_step | line
cache_flush | 0    | 3          | 5
cache_flush | 0    | 4          | 9
"""
given.step_change = """
step | ratio | transient
4    | 2     | false
"""
given.step_times = """
step | seconds
3    | 1
4    | 2
"""
expect = "times"
[[case]]
name = "since the change"
given.events = """
kind        | rank | after_step | line
cache_flush | 0    | 4          | 5
"""
given.step_change = """
step | ratio | transient
4    | 2     | false
"""
given.step_times = """
step | seconds
3    | 1
4    | 2
"""
expect = """
times | since                | step
1     | , 1 of them from step 4 on, where steps became slower | 4
"""
[[case]]
name = "never"
given.events = """
kind | rank
oom  | 0
"""
expect = "times"
---*/
WITH worst AS (
    SELECT step
    FROM step_change
    WHERE ratio > 1 AND NOT transient
    ORDER BY ratio DESC
    LIMIT 1
),

lengths AS (
    SELECT
        w.step,
        min(t.step) AS first_step,
        max(t.step) AS last_step
    FROM worst AS w
    CROSS JOIN step_times AS t
    GROUP BY w.step
),

flushes AS (
    SELECT
        count(*) AS times,
        count(*) FILTER (WHERE coalesce(e.step, e.after_step) < l.step) AS earlier,
        count(*) FILTER (WHERE coalesce(e.step, e.after_step) >= l.step) AS later,
        any_value(l.step) AS onset,
        any_value(l.step - l.first_step) AS before,
        any_value(l.last_step - l.step + 1) AS after,
        arg_min(e.rank, e.line) AS rank,
        min(coalesce(e.step, e.after_step)) AS step,
        min(e.time) AS time,
        arg_min(e.source, e.line) AS source,
        min(e.line) AS line
    FROM events AS e
    LEFT JOIN lengths AS l ON TRUE
    WHERE e.kind = 'cache_flush'
)

SELECT
    times,
    coalesce(printf(', %d of them from step %d on, where steps became slower', later, onset), '') AS since,
    rank, step, time, source, line
FROM flushes
WHERE times > 0 AND coalesce(NOT (earlier / nullif(before, 0) >= $often * later / after), TRUE)
