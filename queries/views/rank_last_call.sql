/*---
title = "The newest operation that each rank recorded, and the line of the user's code that called it"
reads = ["collective_statement"]
materialize = true
[returns]
rank = "INTEGER"
operation = "VARCHAR"
seq = "BIGINT"
group_name = "VARCHAR"
time = "BIGINT"
place = "VARCHAR"
source = "VARCHAR"
[[case]]
name = "the innermost frame outside of installed libraries"
given.collective_statement = """
statement | rank | record | seq | operation  | group_name | frames
entry     | 0    | 4      | 7   | broadcast  | 0          |
entry     | 0    | 5      | 8   | all_reduce | 0          | [["all_reduce", "/v/site-packages/torch/distributed/distributed_c10d.py", 3245], ["step", "/w/train.py", 144]]
entry     | 1    | 5      | 8   | all_reduce | 0          | [["f", "/v/lib/python3.11/site-packages/x.py", 1]]
status    | 1    | 9      |     |            | 0          |
"""
expect = """
rank | operation  | seq | place
0    | all_reduce | 8   | step (/w/train.py:144)
1    | all_reduce | 8   |
"""
---*/
WITH newest AS (
    SELECT
        rank,
        arg_max(operation, record) AS operation,
        arg_max(seq, record) AS seq,
        arg_max(group_name, record) AS group_name,
        arg_max(time, record) AS time,
        arg_max(source, record) AS source,
        arg_max(CAST(frames AS JSON), record) AS frames
    FROM collective_statement
    WHERE statement = 'entry'
    GROUP BY rank
),

own AS (
    SELECT
        rank,
        list_filter(
            CAST(frames AS VARCHAR[][]),
            LAMBDA f: NOT regexp_matches(f[2], '(site|dist)-packages|/lib/python3|^<')
        )[1] AS frame
    FROM newest
)

SELECT
    n.rank,
    n.operation,
    n.seq,
    n.group_name,
    n.time,
    o.frame[1] || ' (' || o.frame[2] || ':' || o.frame[3] || ')' AS place,
    n.source
FROM newest AS n
INNER JOIN own AS o ON n.rank = o.rank
ORDER BY n.rank
