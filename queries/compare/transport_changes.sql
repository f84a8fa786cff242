/*---
title = "Hosts and transports that differ between two runs"
doc   = "Share of each kind of transport among the connections that NCCL reports, where the two runs differ: a path that is gone, new, or used by another number of processes."
reads = ["transport"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
kind = "VARCHAR"
before_processes = "BIGINT"
after_processes = "BIGINT"
before_connections = "BIGINT"
after_connections = "BIGINT"
[[case]]
name = "sockets before, InfiniBand after"
given.transport = """
run_id | host | pid | kind       | connections
before | n1   | 1   | NET/Socket | 2
before | n1   | 1   | P2P        | 3
after  | n1   | 5   | NET/IB     | 2
after  | n1   | 5   | P2P        | 3
"""
expect = """
kind       | before_processes | after_processes | before_connections | after_connections
NET/IB     | 0                | 1               | 0                  | 2
NET/Socket | 1                | 0               | 2                  | 0
"""
---*/
WITH counted AS (
    SELECT
        kind,
        count(DISTINCT host || ':' || pid) FILTER (WHERE run_id = $before) AS before_processes,
        count(DISTINCT host || ':' || pid) FILTER (WHERE run_id = $after) AS after_processes,
        coalesce(CAST(sum(connections) FILTER (WHERE run_id = $before) AS BIGINT), 0) AS before_connections,
        coalesce(CAST(sum(connections) FILTER (WHERE run_id = $after) AS BIGINT), 0) AS after_connections
    FROM transport
    WHERE run_id IN ($before, $after)
    GROUP BY kind
)

SELECT kind, before_processes, after_processes, before_connections, after_connections
FROM counted
WHERE before_processes <> after_processes OR before_connections <> after_connections
ORDER BY kind
