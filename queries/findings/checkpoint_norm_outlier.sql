/*---
title    = "One shard's weights or moments move unlike its peers'"
doc      = "Peers are the shards of all data-parallel ranks of one model-parallel rank, so of the same layers. Compared is by what factor the root mean square of their master weights and moments changed since the checkpoint before; in stage 3, where every rank has a piece of every parameter, also the root mean square itself. A shard leaves the pattern when it is further from the median than a factor that healthy shards never reach, than ten times the usual distance (median over peers and checkpoints), and, from three checkpoints on, than twice its own usual distance. Of four or more shards one can be named; of three it is said with less weight; of two only that they part."
severity = "note"
confidence = "low"
kind     = "incident"
reads    = ["checkpoint_norm"]
summary  = "{text}"
[params]
least = { type = "DOUBLE", default = 0.2, doc = "Smallest logarithmic distance of master weights that counts (0.2 is 22 %)." }
least_moment = { type = "DOUBLE", default = 1.4, doc = "The same for first moments (1.4 is a factor of 4); second moments, which are squares, count twice." }
[returns]
tag = "VARCHAR"
step = "BIGINT"
rank = "INTEGER"
culprit = "BOOLEAN"
kind = "VARCHAR"
growth = "DOUBLE"
peers = "DOUBLE"
shards = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "one of five triples; another pipeline stage moves in another way"
given.checkpoint_norm = """
source | root | tag | step | mp | dp | rank | kind | growth
a      | c    | t   | 20   | 0  | 0  | 0    | fp32 | 1.01
b      | c    | t   | 20   | 0  | 1  | 1    | fp32 | 1.02
d      | c    | t   | 20   | 0  | 2  | 2    | fp32 | 3.0
e      | c    | t   | 20   | 0  | 3  | 3    | fp32 | 1.01
f      | c    | t   | 20   | 0  | 4  | 4    | fp32 | 1.00
g      | c    | t   | 20   | 1  | 0  | 5    | fp32 | 9.0
h      | c    | t   | 20   | 1  | 1  | 6    | fp32 | 9.1
"""
expect = """
tag | step | rank | culprit | kind | growth | peers | shards | source | text
t   | 20   | 2    | true    | fp32 | 3.0    | 1.01  | 5      | d      | the master weights of d grew by a factor of 3 since the checkpoint before, the median of its 5 peers is 1.01
"""
[[case]]
name = "moments of one of three; two shards that part; stage 3 compares sizes, too"
given.checkpoint_norm = """
source | root | tag | step | mp | dp | rank | kind       | growth | zero_stage | rms
a      | c    | t   | 20   | 0  | 0  | 0    | exp_avg    | 1.01   | 1          | 1
b      | c    | t   | 20   | 0  | 1  | 1    | exp_avg    | 1.2    | 1          | 1
d      | c    | t   | 20   | 0  | 2  | 2    | exp_avg    | 90     | 1          | 1
e      | c    | t   | 20   | 1  | 0  |      | fp32       | 1.0    | 1          | 1
f      | c    | t   | 20   | 1  | 1  |      | fp32       | 4.0    | 1          | 1
g      | z    | u   | 20   | 0  | 0  | 0    | exp_avg_sq |        | 3          | 1e-8
h      | z    | u   | 20   | 0  | 1  | 1    | exp_avg_sq |        | 3          | 2e-8
i      | z    | u   | 20   | 0  | 2  | 2    | exp_avg_sq |        | 3          | 1e-4
j      | z    | u   | 20   | 0  | 3  | 3    | exp_avg_sq |        | 3          | 1e-8
"""
expect = """
tag | rank | culprit | shards | source | text
t   | 2    | false   | 3      | d      | the first moments of d grew by a factor of 90 since the checkpoint before, the median of its 3 peers is 1.2; three shards are few to say which is right
t   |      | false   | 2      | e      | the master weights of e and f part: factors of 1 and 4 since the checkpoint before; two shards cannot say which is right
u   | 2    | true    | 4      | i      | the second moments of i have a root mean square of 0.0001, the median of its 4 peers is 1.414e-08
"""
[[case]]
name = "alike; spread; a shard that always moves more; two that differ little"
given.checkpoint_norm = """
source | root | tag | step | mp | dp | rank | kind | growth
a      | c    | t   | 20   | 0  | 0  | 0    | fp32 | 1.01
b      | c    | t   | 20   | 0  | 1  | 1    | fp32 | 1.2
d      | c    | t   | 20   | 0  | 2  | 2    | fp32 | 1.4
e      | c    | t   | 20   | 0  | 3  | 3    | fp32 | 1.6
g      | d    | u   | 20   | 0  | 0  | 0    | fp32 | 1.0
h      | d    | u   | 20   | 0  | 1  | 1    | fp32 | 1.5
i1     | e    | v1  | 20   | 0  | 0  | 0    | fp32 | 1.0
i2     | e    | v2  | 30   | 0  | 0  | 0    | fp32 | 1.0
i3     | e    | v3  | 40   | 0  | 0  | 0    | fp32 | 1.0
j1     | e    | v1  | 20   | 0  | 1  | 1    | fp32 | 1.0
j2     | e    | v2  | 30   | 0  | 1  | 1    | fp32 | 1.0
j3     | e    | v3  | 40   | 0  | 1  | 1    | fp32 | 1.0
k1     | e    | v1  | 20   | 0  | 2  | 2    | fp32 | 1.0
k2     | e    | v2  | 30   | 0  | 2  | 2    | fp32 | 1.0
k3     | e    | v3  | 40   | 0  | 2  | 2    | fp32 | 1.0
l1     | e    | v1  | 20   | 0  | 3  | 3    | fp32 | 1.5
l2     | e    | v2  | 30   | 0  | 3  | 3    | fp32 | 1.6
l3     | e    | v3  | 40   | 0  | 3  | 3    | fp32 | 1.5
"""
expect = "tag | rank"
---*/
WITH measured AS (
    SELECT run_id, root, tag, step, mp, dp, rank, kind, source, growth AS raw, ln(growth) AS value, 'growth' AS measure
    FROM checkpoint_norm
    WHERE growth > 0
    UNION ALL
    SELECT run_id, root, tag, step, mp, dp, rank, kind, source, rms, ln(rms), 'size'
    FROM checkpoint_norm
    WHERE zero_stage = 3 AND rms > 0
),

peers AS (
    SELECT
        measured.*,
        CASE kind WHEN 'fp32' THEN $least WHEN 'exp_avg' THEN $least_moment ELSE 2 * $least_moment END AS floor,
        median(value) OVER (PARTITION BY run_id, root, mp, kind, measure, tag) AS middle,
        count(*) OVER (PARTITION BY run_id, root, mp, kind, measure, tag) AS shards,
        min(source) OVER (PARTITION BY run_id, root, mp, kind, measure, tag) AS first,
        max(source) OVER (PARTITION BY run_id, root, mp, kind, measure, tag) AS last,
        arg_min(raw, source) OVER (PARTITION BY run_id, root, mp, kind, measure, tag) AS first_raw,
        arg_max(raw, source) OVER (PARTITION BY run_id, root, mp, kind, measure, tag) AS last_raw
    FROM measured
),

spread AS (
    SELECT
        peers.*,
        abs(value - middle) AS apart,
        median(abs(value - middle)) OVER (PARTITION BY run_id, root, mp, kind, measure) AS usual,
        CASE
            WHEN count(*) OVER (PARTITION BY run_id, root, mp, kind, measure, dp) >= 3
                THEN median(abs(value - middle)) OVER (PARTITION BY run_id, root, mp, kind, measure, dp)
            ELSE 0
        END AS own
    FROM peers
),

left_behind AS (
    SELECT spread.*
    FROM spread
    WHERE CASE
        WHEN shards >= 4 THEN apart > greatest(floor, 10 * usual, CASE measure WHEN 'growth' THEN 2 * own ELSE 0 END)
        WHEN shards = 3 THEN apart > greatest(2 * floor, 10 * usual, CASE measure WHEN 'growth' THEN 2 * own ELSE 0 END)
        -- Both are half their distance away from the middle, and own is what keeps two unlike shards silent.
        WHEN shards = 2 THEN source = first AND apart > greatest(1.5 * floor, 2 * own)
        ELSE FALSE
    END
)

SELECT
    tag, step, CASE WHEN shards > 2 THEN rank END AS rank, shards >= 4 AND rank IS NOT NULL AS culprit, kind,
    raw AS growth, exp(middle) AS peers, shards, source,
    'the ' || CASE kind WHEN 'fp32' THEN 'master weights' WHEN 'exp_avg' THEN 'first moments' ELSE 'second moments' END || ' of '
    || CASE
        WHEN shards = 2 AND measure = 'growth'
            THEN
                first || ' and ' || last || ' part: factors of ' || printf('%.4g', first_raw) || ' and ' || printf('%.4g', last_raw)
                || ' since the checkpoint before; two shards cannot say which is right'
        WHEN shards = 2
            THEN
                first || ' and ' || last || ' have root mean squares of ' || printf('%.4g', first_raw) || ' and '
                || printf('%.4g', last_raw) || '; two shards cannot say which is right'
        ELSE
            source || CASE measure WHEN 'growth' THEN ' grew by a factor of ' ELSE ' have a root mean square of ' END
            || printf('%.4g', raw) || CASE measure WHEN 'growth' THEN ' since the checkpoint before' ELSE '' END
            || ', the median of its ' || shards || ' peers is ' || printf('%.4g', exp(middle))
            || CASE WHEN shards = 3 THEN '; three shards are few to say which is right' ELSE '' END
    END AS text
FROM left_behind
ORDER BY tag, source, kind, measure
