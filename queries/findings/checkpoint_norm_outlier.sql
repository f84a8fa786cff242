/*---
title    = "One shard's weights move unlike its peers'"
doc      = "From one checkpoint to the next, the root mean square of a shard's master weights changed by a factor that is far from those of the other shards: further than ten times their own spread and by at least `least`."
severity = "note"
confidence = "low"
kind     = "incident"
reads    = ["checkpoint_norm"]
summary  = "{text}"
[params]
least = { type = "DOUBLE", default = 0.2, doc = "Smallest logarithmic distance from the peers that counts (0.2 is 22 %)." }
[returns]
tag = "VARCHAR"
step = "BIGINT"
rank = "INTEGER"
culprit = "BOOLEAN"
growth = "DOUBLE"
peers = "DOUBLE"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "one of five triples"
given.checkpoint_norm = """
source | tag | step | mp | dp | rank | kind | growth
a      | t   | 20   | 0  | 0  | 0    | fp32 | 1.01
b      | t   | 20   | 0  | 1  | 1    | fp32 | 1.02
d      | t   | 20   | 0  | 2  | 2    | fp32 | 3.0
e      | t   | 20   | 0  | 3  | 3    | fp32 | 1.01
f      | t   | 20   | 0  | 4  | 4    | fp32 | 1.00
"""
expect = """
tag | step | rank | growth | peers | source
t   | 20   | 2    | 3.0    | 1.01  | d
"""
[[case]]
name = "all move alike, and too few shards to have a pattern"
given.checkpoint_norm = """
source | tag | step | mp | dp | rank | kind | growth
a      | t   | 20   | 0  | 0  | 0    | fp32 | 1.01
b      | t   | 20   | 0  | 1  | 1    | fp32 | 1.2
d      | t   | 20   | 0  | 2  | 2    | fp32 | 1.4
e      | t   | 20   | 0  | 3  | 3    | fp32 | 1.6
g      | u   | 20   | 0  | 0  | 0    | fp32 | 1.0
h      | u   | 20   | 0  | 1  | 1    | fp32 | 9.0
"""
expect = "tag | rank"
---*/
WITH peers AS (
    SELECT
        n.*,
        median(ln(growth)) OVER (PARTITION BY run_id, root, tag) AS middle,
        count(*) OVER (PARTITION BY run_id, root, tag) AS shards
    FROM checkpoint_norm AS n
    WHERE kind = 'fp32' AND growth > 0
),

spread AS (
    SELECT peers.*, median(abs(ln(growth) - middle)) OVER (PARTITION BY run_id, root, tag) AS deviation
    FROM peers
)

SELECT
    tag, step, rank, rank IS NOT NULL AS culprit, growth, exp(middle) AS peers, source,
    source || ' grew by a factor of ' || round(growth, 3) || ' since the checkpoint before, its peers by ' || round(exp(middle), 3) AS text
FROM spread
WHERE shards >= 4 AND abs(ln(growth) - middle) > greatest($least, 10 * deviation)
ORDER BY tag, source
