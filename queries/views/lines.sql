/*---
title = "Log lines with the global rank resolved"
doc   = "Every line of every log; where the line states no global rank, the one of its file, local rank, host or label. A stamp without a year takes the run's."
reads = ["line", "rank_map", "run_year"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
part = "INTEGER"
time = "BIGINT"
clock = "VARCHAR"
rank = "INTEGER"
host = "VARCHAR"
level = "VARCHAR"
format = "VARCHAR"
role = "VARCHAR"
prefix = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "a local rank that is known to be rank 5, a stamp that takes its year"
given.rank_map = """
source | local_rank | rank
a      | 1          | 5
"""
given.run_year = """
year
2026
"""
given.line = """
source | line | local_rank | rank | text | time              | clock
a      | 1    | 1          |      | x    | 63072000000000000 | day
a      | 2    |            | 0    | y    |                   |
"""
expect = """
source | line | rank | text | time                | clock
a      | 1    | 5    | x    | 1767225600000000000 | year
a      | 2    | 0    | y    |                     |
"""
---*/
SELECT
    v.run_id, v.source, v.line, v.part,
    CASE
        WHEN v.clock <> 'day' OR v.clock IS NULL THEN v.time
        WHEN y.year IS NOT NULL
            THEN epoch_ns(
                make_timestamp(v.time // 1000) + (y.year - 1972) * INTERVAL 1 YEAR
            ) + v.time % 1000
    END AS time,
    CASE WHEN v.clock <> 'day' THEN v.clock WHEN v.clock = 'day' AND y.year IS NOT NULL THEN 'year' END AS clock,
    coalesce(v.rank, m.rank) AS rank,
    coalesce(v.host, m.host) AS host,
    v.level, v.format, v.role, v.prefix, v.text
FROM line AS v
LEFT JOIN rank_map AS m
    ON
        v.run_id = m.run_id AND v.source = m.source AND v.local_rank IS NOT DISTINCT FROM m.local_rank
        AND v.task IS NOT DISTINCT FROM m.task AND v.host IS NOT DISTINCT FROM m.host
LEFT JOIN run_year AS y ON v.run_id = y.run_id
