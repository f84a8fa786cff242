/*---
title = "Events with the global rank resolved"
doc   = "Every recognised happening; where the record states no global rank, the one that its local rank and host, or its process id, were said to be."
reads = ["event", "process"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
part = "INTEGER"
time = "BIGINT"
kind = "VARCHAR"
role = "VARCHAR"
rank = "INTEGER"
host = "VARCHAR"
pid = "BIGINT"
step = "BIGINT"
after_step = "BIGINT"
name = "VARCHAR"
code = "BIGINT"
bytes = "BIGINT"
duration = "BIGINT"
message = "VARCHAR"
detail = "VARCHAR"
[[case]]
name = "a process id that the launcher tied to a rank"
given.process = """
pid | rank
77  | 3
"""
given.event = """
kind | pid | rank
exit | 77  |
exit | 78  |
exit |     | 1
"""
expect = """
kind | pid | rank
exit | 77  | 3
exit | 78  |
exit |     | 1
"""
---*/
WITH pids AS (
    SELECT run_id, pid, min(rank) AS rank
    FROM process
    WHERE pid IS NOT NULL AND rank IS NOT NULL
    GROUP BY run_id, pid
    HAVING count(DISTINCT rank) = 1
)

SELECT
    e.run_id, e.source, e.line, e.part, e.time, e.kind, e.role,
    coalesce(e.rank, pids.rank) AS rank,
    e.host, e.pid, e.step, e.after_step, e.name, e.code, e.bytes, e.duration, e.message, e.detail
FROM event AS e
LEFT JOIN pids ON e.run_id = pids.run_id AND e.pid = pids.pid
