/*---
title      = "The job stood still without a word until it was stopped from outside"
doc        = "Every rank had printed its last step, then nothing was printed for much longer than a step takes, until somebody stopped the job. A long phase without output looks the same, so the confidence is low; nobody is named."
fault      = "comm_hang"
severity   = "fault"
confidence = "low"
reads      = ["event", "events", "rank_progress", "metrics", "line"]
summary    = "no rank printed anything for {silence_s} s after step {last_step}, until the job was stopped from outside"
[params]
least = { type = "DOUBLE", default = 20.0, doc = "Seconds of silence that are always too few." }
steps = { type = "DOUBLE", default = 100.0, doc = "Silence counts from this many times the median step time." }
[returns]
rank = "INTEGER"
last_step = "BIGINT"
silence_s = "DOUBLE"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "forty seconds where a step takes a tenth"
given.event = """
kind          | time          | source | line | message
external_stop | 1800000053000000000 | launch | 1 | Received 15 death signal, shutting down workers
"""
given.rank_progress = """
rank | last_step
0    | 13
1    | 13
"""
given.metrics = """
rank | step | name      | value
0    | 12   | step_time | 0.1
0    | 13   | step_time | 0.1
"""
given.line = """
source | line | rank | time
out    | 9    | 0    | 1800000010000000000
launch | 1    |      | 1800000053000000000
"""
expect = """
rank | last_step | silence_s | step | line
     | 13        | 43        | 14   | 1
"""
[[case]]
name = "the job was still printing"
given.event = """
kind          | time          | source | line
external_stop | 1800000013000000000 | launch | 1
"""
given.rank_progress = """
rank | last_step
0    | 13
"""
given.metrics = """
rank | step | name      | value
0    | 13   | step_time | 0.1
"""
given.line = """
source | line | rank | time
out    | 9    | 0    | 1800000010000000000
"""
expect = "rank | last_step"
---*/
-- A stamp without a year counts within some leap year, so moments are compared as seconds within the year.
WITH stamped AS (
    SELECT time, make_timestamp_ns(time) AS moment, CAST(NULL AS BIGINT) AS line, NULL AS source, NULL AS message
    FROM line
    WHERE time IS NOT NULL
    UNION ALL
    SELECT time, make_timestamp_ns(time) AS moment, line, source, message
    FROM event
    WHERE kind = 'external_stop' AND time IS NOT NULL
),

placed AS (
    SELECT
        time,
        line,
        source,
        message,
        (dayofyear(moment) + CASE WHEN month(moment) > 2 AND year(moment) % 4 <> 0 THEN 1 ELSE 0 END) * 86400
        + hour(moment) * 3600 + minute(moment) * 60 + second(moment) AS second
    FROM stamped
),

stop AS (
    SELECT time, line, source, message, second
    FROM placed
    WHERE line IS NOT NULL
    ORDER BY second, source, line
    LIMIT 1
),

silence AS (
    SELECT s.time, s.line, s.source, s.message, CAST(s.second - max(p.second) AS DOUBLE) AS seconds
    FROM stop AS s
    INNER JOIN placed AS p ON s.second > p.second
    GROUP BY s.time, s.line, s.source, s.message, s.second
),

pace AS (SELECT median(value) AS step_time FROM metrics WHERE name = 'step_time' AND value > 0),

progress AS (SELECT min(last_step) AS least, max(last_step) AS most FROM rank_progress WHERE rank IS NOT NULL)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    p.most AS last_step,
    q.seconds AS silence_s,
    p.least + 1 AS step,
    CASE WHEN q.time > 1000000000000000000 THEN q.time END AS time,  -- without a year it is no time
    q.source,
    q.line,
    q.message AS text
FROM silence AS q
CROSS JOIN progress AS p
CROSS JOIN pace AS k
WHERE
    q.seconds >= greatest($least, $steps * k.step_time)
    AND p.most IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM events WHERE role = 'root' AND kind <> 'external_stop')
