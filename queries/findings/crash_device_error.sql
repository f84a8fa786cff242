/*---
title    = "A device error ended a rank"
doc      = "A CUDA or HIP call failed on a rank, as its watchdog or its C++ side says, and no exception of Python tells more. The earliest counts, with the ranks that say the same within a minute; where most ranks do, nobody is named."
fault    = "crash"
severity = "fault"
weight   = 1
confidence = "high"
reads    = ["events", "metrics", "run_summary", "stop"]
summary  = "{name} ({who})"
[params]
together = { type = "BIGINT", default = 60000000000, doc = "Errors within this many ns count as one happening." }
went_on = { type = "BIGINT", default = 2, doc = "Steps of the rank in the same file after an error that buffered output alone may bring; after more of them it did not end the rank." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
name = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "the watchdog of rank 2 says so, and a line without a rank"
given.run_summary = """
world_size
8
"""
given.events = """
kind         | role | rank | name    | message | after_step | line
device_error | root | 2    | illegal | words   | 30         | 5
device_error | root |      | illegal | words   | 30         | 6
"""
expect = """
rank | culprit | step | name    | line
2    | true    | 31   | illegal | 5
"""
[[case]]
name = "every rank says so"
given.run_summary = """
world_size
2
"""
given.events = """
kind         | role | rank | name    | line
device_error | root | 0    | illegal | 5
device_error | root | 1    | illegal | 6
"""
expect = """
rank | culprit | line
0    | false   | 5
1    | false   | 6
"""
[[case]]
name = "training went on after it"
given.run_summary = """
world_size
8
"""
given.metrics = """
source | rank | step
log    | 3    | 30
"""
given.events = """
kind         | role | rank | name    | source | after_step | line
device_error | root | 3    | illegal | log    | 10         | 5
"""
expect = "rank | culprit"
---*/
WITH reached AS (
    SELECT run_id, source, rank, max(step) AS last_step
    FROM metrics
    -- Most runs have no such event, and then nothing is read.
    WHERE step IS NOT NULL AND source IN (SELECT e.source FROM events AS e WHERE e.kind = 'device_error')
    GROUP BY run_id, source, rank
),

said AS (
    SELECT
        e.rank, e.name, e.time, e.source, e.line, e.message, coalesce(e.step, e.after_step + 1) AS step,
        row_number() OVER (PARTITION BY e.rank ORDER BY e.time NULLS LAST, e.source, e.line) AS place
    FROM events AS e
    LEFT JOIN reached AS r ON e.run_id = r.run_id AND e.source = r.source AND (r.rank IS NULL OR e.rank = r.rank)
    WHERE
        e.kind = 'device_error' AND e.role = 'root' AND e.rank IS NOT NULL
        AND coalesce(r.last_step - e.after_step, 0) <= $went_on
        AND NOT EXISTS (SELECT 1 FROM events AS x WHERE x.kind IN ('exception', 'oom') AND x.role = 'root')
        AND NOT EXISTS (SELECT 1 FROM stop)
        AND NOT EXISTS (SELECT 1 FROM run_summary AS s WHERE s."end" = 'completed')
),

first_one AS (
    SELECT min(time) AS time FROM said
)

SELECT
    e.rank,
    2 * count(*) OVER () <= coalesce(s.world_size, 2) OR s.world_size = 1 AS culprit,
    e.step, e.name, e.time, e.source, e.line, e.message AS text
FROM said AS e
CROSS JOIN first_one AS f
CROSS JOIN run_summary AS s
WHERE e.place = 1 AND (e.time IS NULL OR f.time IS NULL OR e.time - f.time <= $together)
ORDER BY e.rank
