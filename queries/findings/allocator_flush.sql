/*---
title    = "The allocator flushed its cache"
doc      = "DeepSpeed's stage 3 counts how often PyTorch's allocator had to give its cache back and try again: memory is tight, and each flush costs time."
fault    = "throughput"
severity = "evidence"
reads    = ["events"]
summary  = "cache flushes reported {times} times"
[returns]
times = "BIGINT"
rank = "INTEGER"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "twice"
given.events = """
kind        | rank | after_step | line
cache_flush | 0    | 3          | 5
cache_flush | 0    | 4          | 9
"""
expect = """
times | rank | step | line
2     | 0    | 3    | 5
"""
[[case]]
name = "never"
given.events = """
kind | rank
oom  | 0
"""
expect = "times"
---*/
SELECT
    count(*) AS times,
    arg_min(rank, line) AS rank,
    min(coalesce(step, after_step)) AS step,
    min(time) AS time,
    arg_min(source, line) AS source,
    min(line) AS line
FROM events
WHERE kind = 'cache_flush'
HAVING count(*) > 0
