/*---
title    = "Every rank fell silent at the same step, long before the run was stopped"
doc      = "All ranks that print steps printed the same last one, and then nothing for many times the longest pause there had been, until somebody stopped the run from outside. Nothing says which rank the others waited for, so none is named."
fault    = "comm_hang"
severity = "fault"
confidence = "low"
reads    = ["events", "rank_progress", "step_times", "metrics"]
summary  = "all {ranks_seen} ranks fell silent after step {last_step}: nothing for {silence} s, where a step took {typical} s, until the run was stopped from outside"
[params]
least = { type = "DOUBLE", default = 10.0, doc = "Seconds of silence under which nothing is said." }
times = { type = "DOUBLE", default = 10.0, doc = "How many times longer than the longest pause before it the silence must be." }
[returns]
rank = "INTEGER"
step = "BIGINT"
last_step = "BIGINT"
ranks_seen = "BIGINT"
silence = "DOUBLE"
typical = "DOUBLE"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "three steps of a second each, then a minute of nothing"
given.rank_progress = """
rank | last_step
0    | 3
1    | 3
"""
given.step_times = """
step | seconds
2    | 1
3    | 1
"""
given.metrics = """
step | name | time       | source | line
1    | loss | 1000000000 | log    | 1
2    | loss | 2000000000 | log    | 2
3    | loss | 3000000000 | log    | 3
"""
given.events = """
kind          | role | time        | message
external_stop | root | 63000000000 | received SIGTERM
"""
expect = """
rank | step | last_step | ranks_seen | silence | typical | time       | line
     | 4    | 3         | 2          | 60      | 1       | 3000000000 | 3
"""
[[case]]
name = "stopped in the middle of its work"
given.rank_progress = """
rank | last_step
0    | 3
1    | 3
"""
given.step_times = """
step | seconds
2    | 1
3    | 1
"""
given.metrics = """
step | name | time       | source | line
1    | loss | 1000000000 | log    | 1
2    | loss | 2000000000 | log    | 2
3    | loss | 3000000000 | log    | 3
"""
given.events = """
kind          | role | time       | message
external_stop | root | 3900000000 | received SIGTERM
"""
expect = "rank | step | last_step"
---*/
WITH stop AS (
    SELECT min(time) AS time, arg_min(message, time) AS message
    FROM events
    WHERE kind = 'external_stop' AND time IS NOT NULL
    HAVING count(*) > 0
),

stamps AS (
    SELECT step, max(time) AS time, arg_max(source, time) AS source, arg_max(line, time) AS line
    FROM metrics
    WHERE
        step IS NOT NULL AND time IS NOT NULL
        AND run_id IN (SELECT e.run_id FROM events AS e WHERE e.kind = 'external_stop')
    GROUP BY step
),

pauses AS (
    SELECT max(pause) AS longest
    FROM (SELECT (time - lag(time) OVER (ORDER BY step)) / 1e9 AS pause FROM stamps)
),

ends AS (
    SELECT min(last_step) AS slowest, max(last_step) AS fastest, count(*) AS ranks FROM rank_progress
),

pace AS (
    SELECT median(seconds) AS typical FROM step_times
),

last_stamp AS (
    SELECT max(step) AS step, arg_max(time, step) AS time, arg_max(source, step) AS source, arg_max(line, step) AS line
    FROM stamps
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    ends.fastest + 1 AS step,
    ends.fastest AS last_step,
    ends.ranks AS ranks_seen,
    (stop.time - l.time) / 1e9 - (ends.fastest - l.step) * pace.typical AS silence,
    pace.typical,
    l.time, l.source, l.line,
    stop.message AS text
FROM stop
CROSS JOIN ends
CROSS JOIN pace
CROSS JOIN pauses
CROSS JOIN last_stamp AS l
WHERE
    ends.slowest = ends.fastest
    AND (stop.time - l.time) / 1e9 - (ends.fastest - l.step) * pace.typical
    > greatest($least, $times * pace.typical, $times * coalesce(pauses.longest, 0))
    AND NOT EXISTS (SELECT 1 FROM events WHERE role = 'root' AND kind <> 'external_stop')
