/*---
title    = "Steps take longer from one step on"
doc      = "A lasting change of the job's step time (max over ranks), found by change point analysis; a slow start and stretches that pass are left out, and so is a single small change in a short run (see step_time_open). It names no rank: all ranks slow down alike."
fault    = "throughput"
severity = "fault"
weight   = 1
reads    = ["step_times", "rank_step_times"]
summary  = "a step takes {after} s from step {step} on, {ratio} times the {before} s before"
[params]
least = { type = "DOUBLE", default = 1.05, doc = "Ratio of step times under which a change is not worth a fault." }
[returns]
rank = "INTEGER"
step = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "three times slower from step 13 on"
given.step_times = """
step | seconds
1    | 0.100
2    | 0.101
3    | 0.102
4    | 0.100
5    | 0.099
6    | 0.101
7    | 0.100
8    | 0.102
9    | 0.101
10   | 0.099
11   | 0.100
12   | 0.101
13   | 0.300
14   | 0.301
15   | 0.302
16   | 0.300
17   | 0.299
18   | 0.301
19   | 0.300
20   | 0.302
21   | 0.301
22   | 0.299
23   | 0.300
24   | 0.301
"""
expect = """
step
13
"""
[[case]]
name = "steady"
given.step_times = """
step | seconds
1    | 0.100
2    | 0.101
3    | 0.102
4    | 0.100
5    | 0.099
6    | 0.101
7    | 0.100
8    | 0.102
9    | 0.101
10   | 0.099
11   | 0.100
12   | 0.101
"""
expect = "step"
---*/
WITH series AS (
    SELECT list(step ORDER BY step) AS steps, change_points(list(seconds ORDER BY step)) AS found
    FROM step_times
    HAVING count(*) > 0
),

changes AS (
    SELECT steps, unnest(found) AS c FROM series
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    steps[c.place] AS step,
    c.before, c.after, c.ratio,
    r.time, r.source, r.line,
    printf('step %d: %.4g s (typically %.4g s before, %.4g s from here on)', steps[c.place], r.seconds, c.before, c.after)
        AS text
FROM changes
LEFT JOIN (
    SELECT
        step, max(seconds) AS seconds, arg_max(time, seconds) AS time,
        arg_max(source, seconds) AS source, arg_max(line, seconds) AS line
    FROM rank_step_times
    GROUP BY step
) AS r ON r.step = steps[c.place]
WHERE c.ratio >= $least AND c.lasts AND NOT c.transient
ORDER BY c.ratio DESC
LIMIT 1
