/*---
title    = "A worker of the data loader is gone, and nothing says why"
doc      = "The loader found a worker dead and no signal of any worker is stated: it was killed, or ended by its own code (torch/utils/data/dataloader.py)."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} loader processes are gone, the first: {text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "no signal is stated"
given.events = """
kind        | rank | code | name | line | message
data_worker | 1    |      |      | 5    | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "one was killed: its loader says so before it gives up"
given.events = """
kind        | rank | code | name   | line | message
data_worker | 1    | -9   | Killed | 5    | words
data_worker | 1    |      |        | 8    | words
"""
expect = "rank"
---*/
SELECT rank, time, source, line, message AS text
FROM events
WHERE kind = 'data_worker' AND NOT EXISTS (SELECT 1 FROM events AS o WHERE o.kind = 'data_worker' AND o.name IS NOT NULL)
ORDER BY time NULLS LAST, source, line
