/*---
title = "The one host that fell silent"
doc   = "A host whose launcher and ranks wrote of their start or their steps, and then neither of an error, nor an end, nor a lost peer, while every other host did; no row where several are silent or a process is known to have failed by itself. `lost`: connections were closed; `timed_out`: ranks ran out of time."
reads = ["events", "process", "rank_host", "rank_progress", "stop"]
materialize = true
[returns]
host = "VARCHAR"
ranks = "BIGINT"
last_step = "BIGINT"
lost = "BOOLEAN"
timed_out = "BOOLEAN"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the ranks of b stop after step 30, those of a lost them"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
a    | 1    | spawn     | 2
b    | 2    | spawn     | 3
b    | 3    | spawn     | 4
"""
given.rank_host = """
host | rank
a    | 0
a    | 1
b    | 2
b    | 3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 30        | log    | 50
2    | 30        | log    | 51
3    | 30        | log    | 52
"""
given.events = """
kind      | role    | rank | host | line
exception | cascade | 0    |      | 60
kill      | cascade |      | a    | 61
"""
expect = """
host | ranks | last_step | lost | timed_out | line
b    | 2     | 30        | true | false     | 51
"""
[[case]]
name = "those of a ran out of time"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
a    | 1    | spawn     | 2
b    | 2    | spawn     | 3
b    | 3    | spawn     | 4
"""
given.rank_host = """
host | rank
a    | 0
a    | 1
b    | 2
b    | 3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 30        | log    | 50
2    | 30        | log    | 51
3    | 30        | log    | 52
"""
given.events = """
kind     | role    | rank | host | code | line
watchdog | symptom | 0    |      |      | 60
exit     | symptom |      | a    | -6   | 61
"""
expect = """
host | ranks | last_step | lost  | timed_out | line
b    | 2     | 30        | false | true      | 51
"""
[[case]]
name = "its launcher wrote of its end"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
a    | 1    | spawn     | 2
b    | 2    | spawn     | 3
b    | 3    | spawn     | 4
"""
given.rank_host = """
host | rank
a    | 0
a    | 1
b    | 2
b    | 3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 30        | log    | 50
2    | 30        | log    | 51
3    | 30        | log    | 52
"""
given.events = """
kind      | role    | rank | host | code | line
exception | cascade | 0    |      |      | 60
exit      | symptom |      | b    | -9   | 61
"""
expect = "host"
[[case]]
name = "a rank of another host failed by itself"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
a    | 1    | spawn     | 2
b    | 2    | spawn     | 3
b    | 3    | spawn     | 4
"""
given.rank_host = """
host | rank
a    | 0
a    | 1
b    | 2
b    | 3
"""
given.rank_progress = """
rank | last_step | source | line
0    | 30        | log    | 50
2    | 30        | log    | 51
3    | 30        | log    | 52
"""
given.events = """
kind      | role | rank | host | line
exception | root | 0    |      | 60
"""
expect = "host"
[[case]]
name = "two of three hosts are silent"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
b    | 1    | spawn     | 3
c    | 2    | spawn     | 4
"""
given.rank_host = """
host | rank
a    | 0
b    | 1
c    | 2
"""
given.events = """
kind      | role    | rank | line
exception | cascade | 0    | 60
"""
expect = "host"
---*/
WITH spoken AS (  -- how processes ended or what they complained of
    SELECT coalesce(h.host, host_name(e.host)) AS host, e.kind, e.role, e.code
    FROM events AS e
    LEFT JOIN rank_host AS h ON e.rank = h.rank
    WHERE e.kind IN ('exception', 'exit', 'kill', 'signal', 'stack', 'watchdog', 'abort', 'peer_lost', 'store', 'oom', 'device_error', 'xid')
),

hosts AS (
    SELECT
        h.host, count(*) AS ranks_of_host,
        max(p.last_step) AS last_step, arg_max(p.source, p.last_step) AS source, min(p.line) FILTER (WHERE p.last_step IS NOT NULL) AS line,
        max(p.last_time) AS time
    FROM rank_host AS h
    LEFT JOIN rank_progress AS p ON h.rank = p.rank
    GROUP BY h.host
),

launched AS (
    SELECT host_name(host) AS host, arg_max(source, line) AS source, max(line) AS line, max(time) AS time
    FROM process
    WHERE host IS NOT NULL AND statement = 'spawn'
    GROUP BY host_name(host)
),

silent AS (
    SELECT
        h.host, h.ranks_of_host, h.last_step,
        coalesce(h.time, l.time) AS time,
        coalesce(h.source, l.source) AS source,
        CASE WHEN h.source IS NULL THEN l.line ELSE h.line END AS line,
        count(*) OVER () AS silent,
        (SELECT count(*) FROM hosts) AS all_hosts
    FROM hosts AS h
    LEFT JOIN launched AS l ON h.host = l.host
    WHERE
        (h.last_step IS NOT NULL OR l.host IS NOT NULL)
        AND h.host NOT IN (SELECT s.host FROM spoken AS s WHERE s.host IS NOT NULL)
)

SELECT
    s.host, s.ranks_of_host AS ranks, s.last_step,
    coalesce((SELECT bool_or(o.kind = 'peer_lost' OR (o.kind = 'exception' AND o.role = 'cascade')) FROM spoken AS o), FALSE) AS lost,
    coalesce((SELECT bool_or(o.kind = 'watchdog') FROM spoken AS o), FALSE) AS timed_out,
    s.time, s.source, s.line
FROM silent AS s
WHERE
    s.silent = 1 AND s.all_hosts > 1
    AND s.all_hosts - 1 = (SELECT count(DISTINCT o.host) FROM spoken AS o WHERE o.host IN (SELECT h.host FROM hosts AS h))
    AND NOT EXISTS (
        SELECT 1 FROM spoken AS o
        -- A watchdog ends its process by SIGABRT.
        WHERE o.role = 'root' OR o.kind = 'stack' OR (o.code NOT IN (0, 1, -6, 134, -15, 143))
    )
    AND NOT EXISTS (SELECT 1 FROM stop)
ORDER BY s.host
