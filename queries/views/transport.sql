/*---
title = "Over what each process talks to its peers"
doc   = "One row per process and kind of transport."
reads = ["connection"]
[returns]
run_id = "VARCHAR"
host = "VARCHAR"
pid = "BIGINT"
rank = "INTEGER"
kind = "VARCHAR"
connections = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "both directions, to two peers"
given.connection = """
host | pid | rank | kind   | sends | peer_rank | connections | source | line
n1   | 10  | 3    | NET/IB | true  | 4         | 2           | b      | 7
n1   | 10  | 3    | NET/IB | false | 5         | 1           | a      | 6
n1   | 10  | 3    | P2P    | true  | 2         | 4           | a      | 9
"""
expect = """
host | rank | kind   | connections | source | line
n1   | 3    | NET/IB | 3           | a      | 6
n1   | 3    | P2P    | 4           | a      | 9
"""
---*/
SELECT
    run_id,
    host,
    pid,
    rank,
    kind,
    CAST(sum(connections) AS BIGINT) AS connections,
    arg_min(source, line) AS source,
    min(line) AS line
FROM connection
GROUP BY run_id, host, pid, rank, kind
ORDER BY run_id, host, rank, pid, kind
