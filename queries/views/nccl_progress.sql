/*---
title = "How far each rank got in each communicator, by NCCL's own word"
doc   = """
`called` is the number of calls a rank made: of all kinds by the log (operation is null then), of one kind by RAS.
`completed` is the last one of a kind that the Inspector saw end. RAS counts of its last answer; `settled` where an earlier
one, at least 30 s before, has the same counts for every rank: a job that runs on does not stand still so long.
For the log, `settled` means that no line of it can be missing before its end; its end is at `source` and `line`."""
reads = ["nccl_statement"]
materialize = true
[returns]
origin = "VARCHAR"
group_key = "VARCHAR"
operation = "VARCHAR"
size = "INTEGER"
rank = "INTEGER"
called = "BIGINT"
completed = "BIGINT"
settled = "BOOLEAN"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "log, Inspector, and RAS answers between which a rank went on"
given.nccl_statement = """
source | line | answer | time        | statement | origin         | group_key | size | rank | operation  | seq | sound
a      | 4    |        |             | call      | nccl_log       | c         | 2    | 0    | all_reduce | 1   | true
a      | 9    |        |             | call      | nccl_log       | c         | 2    | 0    | barrier    | 2   | true
b      | 4    |        |             | call      | nccl_log       | c         | 2    | 1    | all_reduce | 1   | false
i      | 4    |        |             | done      | nccl_inspector | c         | 2    | 1    | all_reduce | 7   | true
r      | 1    | 1      | 0           | count     | nccl_ras       | c         | 2    | 0    | all_reduce | 8   | true
r      | 1    | 1      | 0           | count     | nccl_ras       | c         | 2    | 1    | all_reduce | 7   | true
r      | 2    | 2      | 40000000000 | count     | nccl_ras       | c         | 2    | 0    | all_reduce | 9   | true
r      | 2    | 2      | 40000000000 | count     | nccl_ras       | c         | 2    | 1    | all_reduce | 7   | true
"""
expect = """
origin         | group_key | operation  | rank | called | completed | settled | source | line
nccl_inspector | c         | all_reduce | 1    |        | 7         | false   | i      | 4
nccl_log       | c         |            | 0    | 2      |           | true    | a      | 9
nccl_log       | c         |            | 1    | 1      |           | false   | b      | 4
nccl_ras       | c         | all_reduce | 0    | 9      |           | false   | r      | 2
nccl_ras       | c         | all_reduce | 1    | 7      |           | false   | r      | 2
"""
[[case]]
name = "two RAS answers of a job that stands still; the rank that left the last one is unknown"
given.nccl_statement = """
source | line | answer | time        | statement | origin   | group_key | size | rank | operation  | seq | sound
r      | 1    | 1      | 0           | count     | nccl_ras | c         | 3    | 0    | all_reduce | 8   | true
r      | 1    | 1      | 0           | count     | nccl_ras | c         | 3    | 1    | all_reduce | 7   | true
r      | 1    | 1      | 0           | count     | nccl_ras | c         | 3    | 2    | all_reduce | 5   | true
r      | 2    | 2      | 40000000000 | count     | nccl_ras | c         | 3    | 0    | all_reduce | 8   | true
r      | 2    | 2      | 40000000000 | count     | nccl_ras | c         | 3    | 1    | all_reduce | 7   | true
"""
expect = """
rank | called | settled
0    | 8      | true
1    | 7      | true
"""
---*/
WITH answers AS (
    SELECT
        source, answer, time,
        row_number() OVER (ORDER BY time DESC NULLS LAST, source DESC, answer DESC) AS age
    FROM nccl_statement
    WHERE statement = 'count'
    GROUP BY source, answer, time
),

newest AS (
    SELECT s.group_key, s.operation, s.size, s.rank, s.seq, s.source, s.line, a.time
    FROM nccl_statement AS s
    INNER JOIN answers AS a ON s.source = a.source AND s.answer = a.answer AND a.age = 1
    WHERE s.statement = 'count'
),

earlier AS (  -- the newest answer that is old enough to compare with
    SELECT source, answer
    FROM answers
    WHERE time <= (SELECT max(time) FROM newest) - 30000000000
    QUALIFY row_number() OVER (ORDER BY age) = 1
),

still AS (
    SELECT coalesce(bool_and(s.seq IS NOT DISTINCT FROM n.seq), FALSE) AS yes
    FROM newest AS n
    LEFT JOIN (
        SELECT c.group_key, c.operation, c.rank, c.seq
        FROM nccl_statement AS c
        SEMI JOIN earlier AS e ON c.source = e.source AND c.answer = e.answer
        WHERE c.statement = 'count'
    ) AS s ON n.group_key = s.group_key AND n.operation = s.operation AND n.rank = s.rank
)

SELECT
    'nccl_log' AS origin, group_key, CAST(NULL AS VARCHAR) AS operation, max(size) AS size, rank,
    max(seq) AS called, CAST(NULL AS BIGINT) AS completed, bool_and(sound) AS settled,
    arg_max(source, seq) AS source, arg_max(line, seq) AS line
FROM nccl_statement
WHERE statement = 'call'
GROUP BY group_key, rank
UNION ALL
SELECT 'nccl_ras', group_key, operation, size, rank, seq, NULL, (SELECT yes FROM still), source, line FROM newest
UNION ALL
SELECT
    'nccl_inspector', group_key, operation, max(size), rank, NULL, max(seq), FALSE, arg_max(source, seq),
    arg_max(line, seq)
FROM nccl_statement
WHERE statement = 'done'
GROUP BY group_key, operation, rank
ORDER BY origin, group_key, operation, rank
