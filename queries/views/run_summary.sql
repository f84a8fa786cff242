/*---
title = "One line per run"
doc   = "Size, span and end of each run. `ended` and `end`: completed (every process that said how it ended, ended well), failed (one ended with an error of its own), stopped (it was ended from outside), unknown (nothing says how it ended)."
keep = true
reads = ["metrics", "process", "line", "events", "trace", "trace_file", "trace_step", "source", "collective_evidence", "stop", "outlived"]
[returns]
name = "VARCHAR"
world_size = "INTEGER"
hosts = "VARCHAR[]"
first_step = "BIGINT"
last_step = "BIGINT"
started = "BIGINT"
ended = "BIGINT"
end = "VARCHAR"
[[case]]
name = "the launcher's word on the world size counts; without it, the highest rank seen"
given.source = """
status | format
read   | lines
"""
given.metrics = """
rank | step | name | value | time
0    | 1    | loss | 3     | 100
3    | 7    | loss | 3     | 900
"""
given.events = """
kind | role     | code | rank
exit | progress | 0    | 0
"""
expect = """
name | world_size | hosts | first_step | last_step | started | ended | end
run  | 4          | []    | 1          | 7         | 100     | 900   | completed
"""
[[case]]
name = "stopped from outside; a host is one with and without its domain"
given.source = """
status | format
read   | lines
"""
given.process = """
world_size | host
8          | a
8          | b
8          | b.net
"""
given.stop = """
line
7
"""
given.events = """
kind          | role    | code | name
external_stop | root    |      | SIGTERM
exit          | cascade | -15  |
"""
expect = """
name | world_size | hosts | end
run  | 8          | ['a', 'b.net'] | stopped
"""
[[case]]
name = "the scheduler's limit, and the exit code of the signal it sent"
given.source = """
status | format
read   | lines
"""
given.stop = """
line
7
"""
given.events = """
kind          | role    | code | name
external_stop | root    |      | RUNLIMIT
exit          | symptom | 140  |
"""
expect = """
name | end
run  | stopped
"""
[[case]]
name = "an error after which its writer went on"
given.source = """
status | format
read   | lines
"""
given.outlived = """
source | line | steps
log    | 9    | 26
"""
given.events = """
kind      | role | rank | source | line
exception | root | 1    | log    | 9
"""
expect = """
name | end
run  | unknown
"""
[[case]]
name = "an error that was caught: both processes ended well"
given.source = """
status | format
read   | lines
"""
given.process = """
world_size
2
"""
given.events = """
kind      | role     | code | rank
exception | root     |      | 1
exit      | progress | 0    |
exit      | progress | 0    |
"""
expect = """
name | world_size | end
run  | 2          | completed
"""
---*/
WITH runs AS (
    SELECT DISTINCT run_id FROM source
),

steps AS (
    -- DeepSpeed prints step=0 before there was any; a trainer that counts from 0 prints a loss there.
    SELECT
        run_id,
        min(step) FILTER (WHERE step > 0 OR name IN ('loss', 'step_time')) AS first_step,
        max(step) AS last_step,
        min(time) AS started,
        max(time) AS ended
    FROM metrics
    GROUP BY run_id
),

profiled AS (
    SELECT
        run_id,
        min(step) FILTER (WHERE origin <> 'whole trace') AS first_step,
        max(step) FILTER (WHERE origin <> 'whole trace') AS last_step
    FROM trace_step
    GROUP BY run_id
),

spans AS (
    SELECT run_id, min(time) AS started, max(time) AS ended FROM line WHERE clock IN ('utc', 'local') GROUP BY run_id
    UNION ALL
    SELECT run_id, min("start"), max("end") FROM trace GROUP BY run_id
),

lines AS (
    SELECT run_id, min(started) AS started, max(ended) AS ended FROM spans GROUP BY run_id
),

seen AS (
    SELECT run_id, max(world_size) AS stated, max(rank) AS highest FROM process GROUP BY run_id
    UNION ALL
    SELECT run_id, max(world_size), max(rank) FROM trace_file GROUP BY run_id
    UNION ALL
    SELECT run_id, NULL, max(rank) FROM metrics GROUP BY run_id
    UNION ALL
    SELECT run_id, NULL, max(rank) FROM collective_evidence GROUP BY run_id
    UNION ALL
    SELECT run_id, NULL, max(rank) FROM source GROUP BY run_id
),

sizes AS (
    SELECT run_id, coalesce(max(stated), max(highest) + 1) AS world_size FROM seen GROUP BY run_id
),

named AS (
    SELECT DISTINCT run_id, host FROM process
),

machines AS (
    -- "localhost" is another name of a host that is also known by its own, and so is one without its domain.
    SELECT
        run_id,
        coalesce(
            list(DISTINCT host ORDER BY host) FILTER (WHERE host <> 'localhost'),
            list(DISTINCT host ORDER BY host) FILTER (WHERE host IS NOT NULL)
        ) AS hosts
    FROM named AS h
    WHERE
        NOT EXISTS (
            SELECT 1 FROM named AS o WHERE h.run_id = o.run_id AND h.host <> o.host AND h.host = host_name(o.host)
        )
    GROUP BY run_id
),

ends AS (
    SELECT
        e.run_id,
        bool_or(e.role = 'root' AND e.kind <> 'external_stop' AND o.line IS NULL) AS erred,
        bool_or(e.kind = 'exit' AND e.code <> 0 AND e.role <> 'cascade') AS failed,
        count(*) FILTER (WHERE e.kind = 'exit' AND e.code = 0) AS well
    FROM events AS e
    LEFT JOIN outlived AS o
        ON
            o.steps > 2 AND e.kind IN ('exception', 'oom') AND e.run_id = o.run_id AND e.source = o.source AND e.line = o.line
            AND e.part IS NOT DISTINCT FROM o.part
    GROUP BY e.run_id
)

SELECT
    r.run_id AS name,
    sizes.world_size,
    coalesce(machines.hosts, []) AS hosts,
    coalesce(steps.first_step, profiled.first_step) AS first_step,
    coalesce(steps.last_step, profiled.last_step) AS last_step,
    least(steps.started, lines.started) AS started,
    greatest(steps.ended, lines.ended) AS ended,
    CASE
        -- An error that a process outlived was caught: where all ended well, none failed.
        WHEN r.run_id IN (SELECT run_id FROM stop) THEN 'stopped'
        WHEN ends.failed OR (ends.erred AND ends.well < coalesce(sizes.world_size, 1 << 30)) THEN 'failed'
        WHEN ends.well > 0 THEN 'completed'
        ELSE 'unknown'
    END AS "end"
FROM runs AS r
LEFT JOIN sizes ON r.run_id = sizes.run_id
LEFT JOIN steps ON r.run_id = steps.run_id
LEFT JOIN profiled ON r.run_id = profiled.run_id
LEFT JOIN lines ON r.run_id = lines.run_id
LEFT JOIN machines ON r.run_id = machines.run_id
LEFT JOIN ends ON r.run_id = ends.run_id
ORDER BY r.run_id
