/*---
title = "Transport map: over what hosts and ranks talk to each other"
doc   = "One row per host and kind of transport, from NCCL's channel lines."
reads = ["transport"]
[params]
most = { type = "INTEGER", default = 500, doc = "Rows at most." }
[returns]
host = "VARCHAR"
kind = "VARCHAR"
ranks = "INTEGER[]"
processes = "BIGINT"
connections = "BIGINT"
[[case]]
name = "two ranks of one host"
given.transport = """
host | pid | rank | kind | connections
n1   | 10  | 0    | P2P  | 4
n1   | 11  | 1    | P2P  | 4
n1   | 11  | 1    | NET/IB | 2
"""
expect = """
host | kind   | ranks  | processes | connections
n1   | NET/IB | [1]    | 1         | 2
n1   | P2P    | [0, 1] | 2         | 8
"""
---*/
SELECT
    host,
    kind,
    list(DISTINCT rank ORDER BY rank) FILTER (WHERE rank IS NOT NULL) AS ranks,
    count(DISTINCT pid) AS processes,
    CAST(sum(connections) AS BIGINT) AS connections
FROM transport
GROUP BY host, kind
ORDER BY host, kind
LIMIT $most
