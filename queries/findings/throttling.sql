/*---
title    = "A device lowered its clocks"
doc      = "Devices (or processors) of which the driver said that heat, a power limit or a power brake holds them back, with the rank that computes there where NCCL's output or the launcher tells. A reason that was reported as often before steps became slower does not explain it, and is left out: a busy device often stands at its power limit all the time."
fault    = "throughput"
severity = "evidence"
reads    = ["events", "step_change", "metric", "run_summary"]
summary  = "{n} devices, the first: {text}"
[params]
often = { type = "DOUBLE", default = 0.5, doc = "Reports per time before the change, as a share of those after it, from which a reason is no news." }
[returns]
rank = "INTEGER"
host = "VARCHAR"
step = "BIGINT"
name = "VARCHAR"
times = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "reported twice, of one device"
given.events = """
kind     | role    | name    | rank | host | line | message          | detail
throttle | symptom | thermal | 1    | n1   | 5    | device 3: heat   | {"device": "3"}
throttle | symptom | thermal | 1    | n1   | 9    | device 3: heat   | {"device": "3"}
"""
expect = """
rank | line | times | text
1    | 5    | 2     | device 3: heat on host n1 (rank 1), 2 reports
"""
[[case]]
name = "the power limit was reached as often before; heat is new"
given.run_summary = """
started | ended
0       | 200000000000
"""
given.step_change = """
step | ratio | transient
60   | 2     | false
"""
given.metric = """
step | name | time
60   | loss | 100000000000
"""
given.events = """
kind     | name  | time         | line | message | detail
throttle | power | 10000000000  | 1    | power   | {"device": "3"}
throttle | power | 50000000000  | 2    | power   | {"device": "3"}
throttle | power | 150000000000 | 3    | power   | {"device": "3"}
throttle | heat  | 150000000000 | 3    | heat    | {"device": "3"}
"""
expect = """
name | times | line | text
heat | 1     | 3    | heat, 1 report
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
ecc | symptom | double | 1
"""
expect = "rank"
---*/
WITH worst AS (
    SELECT step
    FROM step_change
    WHERE ratio > 1 AND NOT transient
    ORDER BY ratio DESC
    LIMIT 1
),

onset AS (
    SELECT min(m.time) AS time
    FROM metric AS m
    INNER JOIN worst AS w ON m.step = w.step
),

devices AS (
    SELECT
        e.rank, e.host, e.name, e.detail,
        min(coalesce(e.step, e.after_step)) AS step,
        count(*) AS times,
        min(e.time) AS time,
        arg_min(e.source, e.line) AS source,
        min(e.line) AS line,
        arg_min(e.message, e.line) AS message,
        -- Clocks may fall some time before it shows: the last quarter before the change does not count.
        count(*) FILTER (WHERE e.time < o.time - (o.time - s.started) // 4) / nullif(any_value((o.time - s.started) * 0.75), 0) AS earlier,
        count(*) FILTER (WHERE e.time >= o.time) / nullif(any_value(s.ended - o.time), 0) AS later
    FROM events AS e
    CROSS JOIN onset AS o
    LEFT JOIN run_summary AS s ON TRUE
    WHERE e.kind = 'throttle'
    GROUP BY e.rank, e.host, e.name, e.detail
)

SELECT
    rank, host, step, name, times, time, source, line,
    trim(message) || coalesce(' on host ' || host, '') || coalesce(' (rank ' || rank || ')', '') || ', ' || times || if(times = 1, ' report', ' reports') AS text
FROM devices
-- Reports that all lie on one side may come from a clock of another zone.
WHERE coalesce(NOT (earlier >= $often * later AND later > 0), TRUE)
ORDER BY time NULLS LAST, source, line, name
