/*---
title = "Exceptions that ended a process and were its own"
doc   = "What follows from another process's end is left out, and so is what was caught: an exception after which its writer made more than two steps in the same file, as many as buffered output may bring late. `of_worker`: it only tells that a worker of a data loader died; `of_memory`: it is a refused allocation too."
reads = ["events", "outlived"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
name = "VARCHAR"
message = "VARCHAR"
text = "VARCHAR"
of_worker = "BOOLEAN"
of_memory = "BOOLEAN"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "its own error, not the peer's closed connection"
given.events = """
kind      | role    | rank | name       | message   | source | line
exception | root    | 1    | ValueError | bad token | log    | 5
exception | cascade | 0    | Closed     |           | log    | 3
"""
expect = """
rank | name       | text                  | of_worker | of_memory | line
1    | ValueError | ValueError: bad token | false     | false     | 5
"""
[[case]]
name = "one that tells of a loader's worker, one of memory"
given.events = """
kind        | role    | rank | name          | message | source | line
exception   | root    | 1    | RuntimeError  | killed  | log    | 5
data_worker | symptom | 1    | Killed        |         | log    | 5
exception   | root    | 2    | OSError       | shm     | log    | 7
oom         | root    | 2    | shared_memory |         | log    | 7
"""
expect = """
rank | text                 | of_worker | of_memory
1    | RuntimeError: killed | true      | false
2    | OSError: shm         | false     | true
"""
[[case]]
name = "a caught one"
given.outlived = """
source | line | steps
log    | 5    | 30
"""
given.events = """
kind      | role | rank | name    | message | source | line
exception | root | 0    | OSError | retry   | log    | 5
"""
expect = "rank | name"
---*/
SELECT
    e.run_id, e.rank, e.name, e.message,
    e.name || ': ' || coalesce(e.message, '') AS text,
    EXISTS(
        SELECT 1 FROM events AS w
        WHERE
            w.kind = 'data_worker' AND e.run_id = w.run_id AND e.source = w.source AND e.line = w.line
            AND e.part IS NOT DISTINCT FROM w.part
    ) AS of_worker,
    EXISTS(
        SELECT 1 FROM events AS m WHERE m.kind = 'oom' AND e.run_id = m.run_id AND e.source = m.source AND e.line = m.line
    ) AS of_memory,
    e.time, e.source, e.line
FROM events AS e
LEFT JOIN outlived AS o
    ON e.run_id = o.run_id AND e.source = o.source AND e.line = o.line AND e.part IS NOT DISTINCT FROM o.part
WHERE e.kind = 'exception' AND e.role = 'root' AND coalesce(o.steps, 0) <= 2
ORDER BY e.run_id, e.time NULLS LAST, e.source, e.line
