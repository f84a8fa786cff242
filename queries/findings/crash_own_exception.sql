/*---
title    = "The program raised an exception of its own"
doc      = "An exception that ended a process and says more than that another process is gone: neither that of a data loader whose worker died (torch/csrc/DataLoader.cpp: who killed the worker is the question), nor a closed connection, nor one after which training went on for several steps."
fault    = "crash"
severity = "evidence"
reads    = ["events", "outlived", "stop"]
summary  = "{name}: {text}"
[params]
went_on = { type = "BIGINT", default = 2, doc = "Steps in the same file after an exception that buffered output alone may bring; after more of them it was caught." }
[returns]
rank = "INTEGER"
name = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "its own error"
given.events = """
kind      | role    | rank | name       | message   | source | line
exception | root    | 1    | ValueError | bad token | log    | 5
exception | cascade | 0    | Closed     |           | log    | 3
"""
expect = """
rank | name       | line
1    | ValueError | 5
"""
[[case]]
name = "a loader's worker was killed: the exception only tells of it"
given.events = """
kind        | role    | rank | name         | message | source | line
exception   | root    | 1    | RuntimeError | killed  | log    | 5
data_worker | symptom | 1    | Killed       |         | log    | 5
"""
expect = "rank | name"
[[case]]
name = "a caught one"
given.outlived = """
source | line | steps
log    | 5    | 30
"""
given.events = """
kind      | role | rank | name    | message | source | line
exception | root | 1    | OSError | retry   | log    | 5
"""
expect = "rank | name"
---*/
SELECT e.rank, e.name, e.time, e.source, e.line, e.message AS text
FROM events AS e
LEFT JOIN outlived AS o
    ON e.run_id = o.run_id AND e.source = o.source AND e.line = o.line AND e.part IS NOT DISTINCT FROM o.part
LEFT JOIN events AS w
    ON
        w.kind = 'data_worker' AND e.run_id = w.run_id AND e.source = w.source AND e.line = w.line
        AND e.part IS NOT DISTINCT FROM w.part
WHERE
    e.kind = 'exception' AND e.role = 'root' AND w.line IS NULL AND coalesce(o.steps, 0) <= $went_on
    AND NOT EXISTS (SELECT 1 FROM stop)
ORDER BY e.time NULLS LAST, e.source, e.line
