/*---
title    = "Peers noticed that a rank was gone before any of them timed out"
doc      = "The first record of a closed connection that is earlier than every watchdog's message, in a run in which a rank raised an exception of its own: waiting that began later follows from that exception."
severity = "evidence"
reads    = ["events"]
summary  = "{text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a closed connection, and ten minutes later the watchdog"
given.events = """
kind      | role    | rank | time | line | message
exception | root    | 4    | 10   | 1    |
peer_lost | cascade | 0    | 11   | 2    | closed
watchdog  | symptom | 0    | 600  | 3    |
"""
expect = """
rank | time | line | text
0    | 11   | 2    | closed
"""
[[case]]
name = "the watchdog came first: its own end closed the connections"
given.events = """
kind      | role    | rank | time | line | message
exception | root    | 4    | 10   | 1    |
watchdog  | symptom | 0    | 600  | 2    |
peer_lost | cascade | 0    | 611  | 3    | closed
"""
expect = "rank | time | line | text"
---*/
SELECT rank, time, source, line, message AS text
FROM events
WHERE
    kind = 'peer_lost'
    AND EXISTS (SELECT 1 FROM events AS x WHERE x.kind = 'exception' AND x.role = 'root')
    AND time < coalesce((SELECT min(w.time) FROM events AS w WHERE w.kind = 'watchdog'), 9223372036854775807)
ORDER BY time, source, line
LIMIT 1
