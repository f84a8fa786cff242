/*---
title = "Who talks to whom over what: pairs of ranks, or of hosts where there are many ranks"
doc   = """
From NCCL's channel lines. A connection counts once, though both ends of one over the network report it; `one` and `other`
are ordered by rank or name. Connections whose other end no line identifies are left out here; transport_map counts them."""
reads = ["connection"]
[params]
by_rank = { type = "BIGINT", default = 32, doc = "Up to this many processes the pairs are those of ranks, beyond it those of hosts." }
most = { type = "INTEGER", default = 5000, doc = "Rows at most." }
[returns]
one = "VARCHAR"
other = "VARCHAR"
one_rank = "INTEGER"
other_rank = "INTEGER"
kinds = "VARCHAR[]"
connections = "BIGINT"
[[case]]
name = "both ends report a network connection, each end its own direction of P2P"
given.connection = """
host | pid | rank | kind   | sends | peer_host | peer_pid | peer_rank | connections
n1   | 10  | 0    | NET/IB | true  | n2        | 20       | 2         | 2
n2   | 20  | 2    | NET/IB | false | n1        | 10       | 0         | 2
n1   | 10  | 0    | P2P    | true  | n1        | 11       | 1         | 4
n1   | 11  | 1    | P2P    | true  | n1        | 10       | 0         | 4
n1   | 11  | 1    | SHM    | true  | n1        | 10       | 0         | 1
n1   | 11  | 1    | NET/IB | true  |           |          |           | 1
"""
expect = """
one    | other  | one_rank | other_rank | kinds      | connections
rank 0 | rank 1 | 0        | 1          | ['P2P', 'SHM'] | 9
rank 0 | rank 2 | 0        | 2          | ['NET/IB']     | 2
"""
[[case]]
name = "too many for ranks: hosts"
params.by_rank = 2
given.connection = """
host | pid | rank | kind   | sends | peer_host | peer_pid | peer_rank | connections
n1   | 10  | 0    | NET/IB | true  | n2        | 20       | 2         | 2
n2   | 20  | 2    | NET/IB | true  | n1        | 10       | 0         | 2
n1   | 11  | 1    | P2P    | true  | n1        | 10       | 0         | 4
"""
expect = """
one | other | one_rank | kinds    | connections
n1  | n1    |          | ['P2P']    | 4
n1  | n2    |          | ['NET/IB'] | 4
"""
---*/
WITH few AS (
    SELECT
        count(*) <= $by_rank
        AND NOT bool_or(rank IS NULL) AND count(DISTINCT rank) = count(*) AS ranks
    FROM (SELECT DISTINCT host, pid, rank FROM connection) AS process
),

direction AS (  -- from the sending to the receiving process; the larger of what the two ends report
    SELECT
        sender, receiver, kind,
        any_value(sender_host) AS sender_host,
        any_value(receiver_host) AS receiver_host,
        any_value(sender_rank) AS sender_rank,
        any_value(receiver_rank) AS receiver_rank,
        greatest(
            coalesce(sum(connections) FILTER (WHERE sends), 0), coalesce(sum(connections) FILTER (WHERE NOT sends), 0)
        ) AS connections
    FROM (
        SELECT
            sends, kind, connections,
            CASE WHEN sends THEN host || ':' || pid ELSE peer_host || ':' || peer_pid END AS sender,
            CASE WHEN sends THEN peer_host || ':' || peer_pid ELSE host || ':' || pid END AS receiver,
            CASE WHEN sends THEN host ELSE peer_host END AS sender_host,
            CASE WHEN sends THEN peer_host ELSE host END AS receiver_host,
            CASE WHEN sends THEN rank ELSE peer_rank END AS sender_rank,
            CASE WHEN sends THEN peer_rank ELSE rank END AS receiver_rank
        FROM connection
        WHERE peer_pid IS NOT NULL
    ) AS told
    GROUP BY sender, receiver, kind
),

pair AS (
    SELECT
        d.kind, d.connections,
        CASE WHEN f.ranks THEN least(d.sender_rank, d.receiver_rank) END AS one_rank,
        CASE WHEN f.ranks THEN greatest(d.sender_rank, d.receiver_rank) END AS other_rank,
        CASE WHEN NOT f.ranks THEN least(d.sender_host, d.receiver_host) END AS one_host,
        CASE WHEN NOT f.ranks THEN greatest(d.sender_host, d.receiver_host) END AS other_host
    FROM direction AS d
    CROSS JOIN few AS f
)

SELECT
    coalesce('rank ' || one_rank, one_host) AS one,
    coalesce('rank ' || other_rank, other_host) AS other,
    one_rank,
    other_rank,
    list(DISTINCT kind ORDER BY kind) AS kinds,
    CAST(sum(connections) AS BIGINT) AS connections
FROM pair
GROUP BY one_rank, other_rank, one_host, other_host
ORDER BY one_rank, other_rank, one_host, other_host
LIMIT $most
