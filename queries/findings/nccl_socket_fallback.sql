/*---
title      = "A host talks over sockets while others use a faster network"
doc        = "NCCL falls back to TCP sockets where it finds no InfiniBand device or plugin on a host, and says so in one line only. Where all hosts use sockets, that is how the job was set up."
fault      = "throughput"
severity   = "warning"
confidence = "medium"
reads      = ["environment", "transport"]
summary    = "{host} talks over sockets, other hosts over {others}"
[returns]
rank = "INTEGER"
host = "VARCHAR"
others = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "one of three hosts"
given.environment = """
name         | value  | host | source | line
nccl_network | IB     | n1   | log    | 3
nccl_network | Socket | n2   | log    | 4
nccl_network | IB     | n3   | log    | 5
"""
expect = """
host | others | line
n2   | IB     | 4
"""
[[case]]
name = "all of them"
given.environment = """
name         | value  | host
nccl_network | Socket | n1
nccl_network | Socket | n2
"""
expect = "host | others"
---*/
WITH said AS (
    SELECT host, value AS network, source, line FROM environment WHERE name = 'nccl_network' AND host IS NOT NULL
    UNION ALL
    SELECT host, regexp_extract(kind, '^NET/([^/]+)', 1) AS network, source, line FROM transport WHERE kind LIKE 'NET/%'
),

host_network AS (
    SELECT
        host,
        bool_and(network = 'Socket') AS only_sockets,
        string_agg(DISTINCT network, ', ') FILTER (WHERE network <> 'Socket') AS fast,
        arg_min(source, line) AS source,
        min(line) AS line
    FROM said
    GROUP BY host
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    s.host,
    f.networks AS others,
    CAST(NULL AS BIGINT) AS step,
    CAST(NULL AS BIGINT) AS time,
    s.source,
    s.line,
    'NCCL on ' || s.host || ' uses sockets only' AS text
FROM host_network AS s
CROSS JOIN (SELECT string_agg(DISTINCT fast, ', ') AS networks FROM host_network WHERE NOT only_sockets) AS f
WHERE s.only_sockets AND f.networks IS NOT NULL
ORDER BY s.host
