/*---
title    = "One host fell silent, and the others lost their connection to it"
doc      = "The launcher and the ranks of one host wrote of their start or their steps, and then neither an error, nor an end, nor a complaint of a lost peer, while every other host did: the host is gone, or what it wrote last is. Where ranks ran out of time without a connection closed, nothing is said: a rank that hangs is as silent. It names no rank: those of the host did not fail by themselves."
fault    = "crash"
severity = "fault"
weight   = 1
confidence = "medium"
reads    = ["events", "process", "rank_host", "rank_progress", "stop"]
summary  = "host {host} fell silent with its {ranks_of_host} ranks{last}, and {complaints} others lost their connection"
[returns]
rank = "INTEGER"
host = "VARCHAR"
ranks_of_host = "BIGINT"
last = "VARCHAR"
complaints = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
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
rank | host | ranks_of_host | complaints | step | line
     | b    | 2             | 1          | 31   | 51
"""
[[case]]
name = "its launcher wrote of its end"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
b    | 1    | spawn     | 3
"""
given.rank_host = """
host | rank
a    | 0
b    | 1
"""
given.events = """
kind      | role    | rank | host | code | line
exception | cascade | 0    |      |      | 60
exit      | symptom |      | b    | -9   | 61
"""
expect = "rank | host"
[[case]]
name = "a rank of another host failed by itself"
given.process = """
host | rank | statement | line
a    | 0    | spawn     | 1
b    | 1    | spawn     | 3
"""
given.rank_host = """
host | rank
a    | 0
b    | 1
"""
given.events = """
kind      | role | rank | host | line
exception | root | 0    |      | 60
"""
expect = "rank | host"
[[case]]
name = "two of three hosts are silent; and one of two whose peers only ran out of time"
given.process = """
run_id | host | rank | statement | line
a      | a    | 0    | spawn     | 1
a      | b    | 1    | spawn     | 3
a      | c    | 2    | spawn     | 4
"""
given.rank_host = """
run_id | host | rank
a      | a    | 0
a      | b    | 1
a      | c    | 2
"""
given.events = """
run_id | kind      | role    | rank | line
a      | exception | cascade | 0    | 60
"""
expect = "rank | host"
---*/
WITH spoken AS (  -- how processes ended or what they complained of
    SELECT coalesce(h.host, lower(split_part(e.host, '.', 1))) AS host, e.kind, e.role, e.code
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
    SELECT lower(split_part(host, '.', 1)) AS host, arg_max(source, line) AS source, max(line) AS line, max(time) AS time
    FROM process
    WHERE host IS NOT NULL AND statement = 'spawn'
    GROUP BY lower(split_part(host, '.', 1))
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
    CAST(NULL AS INTEGER) AS rank,
    s.host, s.ranks_of_host,
    coalesce(' after step ' || s.last_step, '') AS last,
    (SELECT count(*) FROM events AS e WHERE e.kind = 'exception' AND e.role = 'cascade') AS complaints,
    s.last_step + 1 AS step,
    s.time, s.source, s.line,
    'the last record of host ' || s.host || ', without an error, an end or a complaint; every other host wrote of one' AS text
FROM silent AS s
WHERE
    s.silent = 1 AND s.all_hosts > 1
    AND s.all_hosts - 1 = (SELECT count(DISTINCT o.host) FROM spoken AS o WHERE o.host IN (SELECT h.host FROM hosts AS h))
    AND EXISTS (SELECT 1 FROM spoken AS o WHERE o.kind = 'peer_lost' OR (o.kind = 'exception' AND o.role = 'cascade'))
    AND NOT EXISTS (SELECT 1 FROM spoken AS o WHERE o.role = 'root' OR o.kind IN ('watchdog', 'stack') OR o.code NOT IN (0, 1, -15, 143))
    AND NOT EXISTS (SELECT 1 FROM stop)
ORDER BY s.host
