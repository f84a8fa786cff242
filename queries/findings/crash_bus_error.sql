/*---
title    = "A process ended by SIGBUS"
doc      = "A page that was mapped could not be had: a full /dev/shm (torch/csrc/DataLoader.cpp says so of the workers of data loaders; NCCL and tensors that processes share lie there too), a mapped file that was cut or whose file system failed, seldom broken memory."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} records of SIGBUS"
[returns]
rank = "INTEGER"
code = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "by exit code, by signal, and of a loader's worker"
given.events = """
kind        | rank | code | line
exit        | 1    | -7   | 5
signal      | 2    | 7    | 6
data_worker | 3    | -7   | 7
exit        | 0    | 135  | 8
"""
expect = """
rank | code | line
1    | -7   | 5
2    | 7    | 6
3    | -7   | 7
0    | 135  | 8
"""
[[case]]
name = "another signal, and an exit code of 7"
given.events = """
kind | rank | code
exit | 1    | -11
exit | 1    | 7
"""
expect = "rank"
---*/
SELECT rank, code, time, source, line
FROM events
WHERE (kind IN ('exit', 'signal', 'data_worker') AND code IN (-7, 135)) OR (kind = 'signal' AND code = 7)
ORDER BY time NULLS LAST, source, line
