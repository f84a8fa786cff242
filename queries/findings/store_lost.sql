/*---
title    = "The store by which the processes find each other is gone"
doc      = "Agents or ranks lost the rendezvous store, which one process or agent keeps, and nothing says that a process failed by itself: its host or agent is gone. Where one did, the lost store follows from that."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} records, the first: {text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.events = """
kind  | role    | rank | name | line | message
store | cascade | 6    | lost | 5    | recvValue failed
"""
expect = """
rank | line
6    | 5
"""
[[case]]
name = "it does not"
given.events = """
kind      | role    | rank | name | line | message
store     | cascade | 6    | lost | 5    | recvValue failed
exception | root    | 0    | ValueError | 4 | bad
"""
expect = "rank"
---*/
SELECT rank, time, source, line, message AS text
FROM events
WHERE
    (kind = 'store' OR (kind = 'exception' AND role = 'cascade' AND name LIKE '%Rendezvous%Error'))
    AND NOT EXISTS (
        SELECT 1 FROM events AS o
        WHERE o.role = 'root' OR o.kind = 'watchdog' OR (o.kind IN ('exit', 'signal') AND o.code NOT IN (0, 1, -15, 143))
    )
ORDER BY time NULLS LAST, source, line
