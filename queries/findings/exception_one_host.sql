/*---
title    = "Every rank of one host raised it, and no rank of another"
doc      = "The exceptions that ended the run came from all ranks of one of several hosts: what differs between hosts (what is installed, mounted, plugged in) differs there."
fault    = "crash"
severity = "evidence"
reads    = ["events", "rank_host"]
summary  = "{text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.rank_host = """
host | rank
a    | 0
a    | 1
b    | 2
b    | 3
"""
given.events = """
kind      | role | rank | name        | line
exception | root | 2    | ImportError | 5
exception | root | 3    | ImportError | 7
"""
expect = """
rank | line
     | 5
"""
[[case]]
name = "it does not"
given.rank_host = """
host | rank
a    | 0
a    | 1
b    | 2
b    | 3
"""
given.events = """
kind      | role | rank | name       | line
exception | root | 3    | ValueError | 7
"""
expect = "rank"
---*/
WITH raised AS (
    SELECT DISTINCT rank, name FROM events WHERE kind = 'exception' AND role = 'root' AND rank IS NOT NULL
),

hosts AS (
    SELECT h.host, count(DISTINCT h.rank) AS ranks, count(DISTINCT r.rank) AS raised, min(r.name) AS name
    FROM rank_host AS h
    LEFT JOIN raised AS r ON h.rank = r.rank
    GROUP BY h.host
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    min(e.time) AS time, arg_min(e.source, e.line) AS source, min(e.line) AS line,
    'all ' || any_value(h.ranks) || ' ranks of ' || h.host || ' and no others: ' || any_value(h.name) AS text
FROM hosts AS h
INNER JOIN rank_host AS m ON h.host = m.host
INNER JOIN events AS e ON m.rank = e.rank AND e.kind = 'exception' AND e.role = 'root'
WHERE
    h.raised = h.ranks AND h.ranks > 1
    AND (SELECT count(*) FROM hosts AS o WHERE o.raised > 0) = 1 AND (SELECT count(*) FROM hosts) > 1
GROUP BY h.host
ORDER BY h.host
