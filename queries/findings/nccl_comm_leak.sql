/*---
title    = "Communicators are made again and again and never destroyed"
doc      = "Every NCCL communicator holds device and host memory and connections. A job makes its groups once; a process that has made many of one size and destroyed none of them makes new groups as it runs."
severity = "note"
reads    = ["nccl_comm", "nccl_process"]
summary  = "process {pid} on {host} made {made} communicators of {nranks} ranks and destroyed {ended}"
[params]
least = { type = "BIGINT", default = 16, doc = "Communicators of one size in one process that are too many." }
[returns]
rank = "INTEGER"
host = "VARCHAR"
pid = "BIGINT"
nranks = "INTEGER"
made = "BIGINT"
ended = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "three made, none destroyed"
params.least = 3
given.nccl_comm = """
host | pid | line | statement     | comm | nranks | function
n1   | 10  | 1    | init_complete | 0xa  | 8      | ncclCommSplit
n1   | 10  | 5    | init_complete | 0xb  | 8      | ncclCommSplit
n1   | 10  | 9    | init_complete | 0xc  | 8      | ncclCommSplit
"""
given.nccl_process = """
host | pid | rank | believed
n1   | 10  | 3    | true
"""
expect = """
rank | pid | nranks | made | ended | line
3    | 10  | 8      | 3    | 0     | 9
"""
[[case]]
name = "destroyed again"
params.least = 3
given.nccl_comm = """
host | pid | line | statement     | comm | nranks
n1   | 10  | 1    | init_complete | 0xa  | 8
n1   | 10  | 2    | destroy       | 0xa  | 8
n1   | 10  | 5    | init_complete | 0xa  | 8
n1   | 10  | 6    | destroy       | 0xa  | 8
n1   | 10  | 9    | init_complete | 0xa  | 8
"""
given.nccl_process = """
host | pid | rank | believed
n1   | 10  | 3    | true
"""
expect = "rank | made"
---*/
WITH life AS (
    SELECT
        host,
        pid,
        nranks,
        count(*) FILTER (WHERE statement = 'init_complete') AS made,
        count(*) FILTER (WHERE statement IN ('destroy', 'abort')) AS ended,
        max(line) FILTER (WHERE statement = 'init_complete') AS line,
        arg_max(source, line) FILTER (WHERE statement = 'init_complete') AS source,
        max(time) FILTER (WHERE statement = 'init_complete') AS time
    FROM nccl_comm
    GROUP BY host, pid, nranks
)

SELECT
    p.rank,
    l.host,
    l.pid,
    l.nranks,
    l.made,
    l.ended,
    CAST(NULL AS BIGINT) AS step,
    l.time,
    l.source,
    l.line,
    l.made || ' communicators of ' || l.nranks || ' ranks made, ' || l.ended || ' destroyed' AS text
FROM life AS l
INNER JOIN nccl_process AS p ON l.host = p.host AND l.pid = p.pid AND p.believed
WHERE l.made >= $least AND l.ended = 0
ORDER BY l.made DESC, l.host, l.pid, l.nranks
