/*---
title    = "The program raised an exception of its own"
doc      = "An exception that ended a process and says more than that another process is gone: neither that of a data loader whose worker died (torch/csrc/DataLoader.cpp: who killed the worker is the question), nor a closed connection, nor one after which training went on for several steps."
fault    = "crash"
severity = "evidence"
reads    = ["own_exception", "stop"]
summary  = "{name}: {text}"
[returns]
rank = "INTEGER"
name = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "its own error"
given.own_exception = """
rank | name       | message   | of_worker | source | line
1    | ValueError | bad token | false     | log    | 5
"""
expect = """
rank | name       | text      | line
1    | ValueError | bad token | 5
"""
[[case]]
name = "a loader's worker was killed: the exception only tells of it"
given.own_exception = """
rank | name         | message | of_worker | source | line
1    | RuntimeError | killed  | true      | log    | 5
"""
expect = "rank | name"
[[case]]
name = "the run was stopped from outside"
given.stop = """
line
4
"""
given.own_exception = """
rank | name       | message   | of_worker | source | line
1    | ValueError | bad token | false     | log    | 5
"""
expect = "rank | name"
---*/
SELECT rank, name, time, source, line, message AS text
FROM own_exception
WHERE NOT of_worker AND NOT EXISTS (SELECT 1 FROM stop)
ORDER BY time NULLS LAST, source, line
