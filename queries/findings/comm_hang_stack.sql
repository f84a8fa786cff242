/*---
title      = "A rank was in its own code while the others stood in a collective"
doc        = "Stacks of live processes: where some ranks stand in a collective, those that do not are the ones that did not come. Ranks without a stack are not judged, and nobody is named where those outside are not the fewer."
fault      = "comm_hang"
severity   = "fault"
weight     = 2
confidence = "medium"
reads      = ["rank_stack", "rank_progress"]
summary    = "rank {ranks} was in {place} while {waiting} other ranks stood in a collective"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
place = "VARCHAR"
waiting = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "one of three is outside"
given.rank_stack = """
rank | place           | waits | source | line
0    | <module> (a:9)  | true  | x      | 1
1    | load (a:4)      | false | y      | 1
2    | <module> (a:9)  | true  | z      | 1
"""
given.rank_progress = """
rank | last_step
1    | 13
"""
expect = """
rank | culprit | place      | waiting | step
1    | true    | load (a:4) | 2       | 14
"""
[[case]]
name = "half of them outside, or all: nothing to say"
given.rank_stack = """
rank | place      | waits
0    | f (a:9)    | true
1    | load (a:4) | false
"""
expect = "rank | culprit"
---*/
WITH counted AS (
    SELECT count(*) FILTER (WHERE waits) AS waiting, count(*) FILTER (WHERE NOT waits) AS outside FROM rank_stack
)

SELECT
    s.rank,
    TRUE AS culprit,
    s.place,
    c.waiting,
    p.last_step + 1 AS step,
    CAST(NULL AS BIGINT) AS time,
    s.source,
    s.line,
    'stack: ' || s.place AS text
FROM rank_stack AS s
INNER JOIN counted AS c ON c.outside < c.waiting
LEFT JOIN (
    SELECT rank, max(last_step) AS last_step FROM rank_progress GROUP BY rank
) AS p ON s.rank = p.rank
WHERE NOT s.waits
ORDER BY s.rank
