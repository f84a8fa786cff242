/*---
title      = "Ranks that the others wait for"
doc        = "What the ranks recorded of their collectives puts the blame on these: see view hang_suspect. Ranks without evidence are never named; they are listed under coverage."
fault      = "comm_hang"
severity   = "fault"
weight     = 3
confidence = "high"
reads      = ["hang_suspect", "group_member", "rank_progress", "rank_last_call", "known_rank", "rank_in_group", "rank_stack"]
summary    = "rank {ranks}: {text}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
reason = "VARCHAR"
group_name = "VARCHAR"
seq = "BIGINT"
operation = "VARCHAR"
waiting = "BIGINT"
confidence = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "rank 1 did not come"
given.hang_suspect = """
rank | reason     | group_key | seq | operation  | waiting | detail
1    | not joined | 1         | 68  | all_reduce | 3       | it is in no recorded operation itself
"""
given.group_member = """
group_key | group_name | rank
1         | 1          | 0
1         | 1          | 1
"""
given.rank_progress = """
rank | last_step
0    | 13
1    | 13
"""
given.rank_last_call = """
rank | operation  | seq | place                  | source
1    | all_gather | 67  | step (/w/train.py:144) | dump_1
"""
given.rank_stack = """
rank | place
1    | wait (/w/train.py:9)
"""
given.known_rank = """
rank
0
1
"""
given.rank_in_group = """
group_key | rank
1         | 0
1         | 1
"""
expect = """
rank | culprit | reason     | seq | confidence | step | source | text
1    | true    | not joined | 68  | high       | 14   | dump_1 | 3 other ranks wait in all_reduce 68 of group 1, which it has not entered: it is in no recorded operation itself; its last call was all_gather 67 from step (/w/train.py:144); it was in wait (/w/train.py:9)
"""
[[case]]
name = "nothing names the operation, and only NCCL's log the group"
given.hang_suspect = """
rank | reason     | group_key | seq | waiting | detail
1    | not joined | c7        | 6   | 1       | why
"""
expect = """
rank | group_name | confidence | text
1    | c7         | medium     | another rank waits in collective 6 of group c7, which it has not entered: why
"""
[[case]]
name = "nobody is suspected"
given.rank_progress = """
rank | last_step
0    | 13
"""
expect = "rank | culprit"
---*/
WITH named AS (
    SELECT group_key, any_value(group_name) AS group_name, any_value(group_desc) AS group_desc
    FROM group_member
    GROUP BY group_key
),

mute AS (
    SELECT count(*) AS ranks
    FROM known_rank
    WHERE rank NOT IN (SELECT rank FROM rank_in_group)
),

step AS (
    SELECT rank, max(last_step) AS last_step
    FROM rank_progress
    WHERE rank IS NOT NULL
    GROUP BY rank
),

suspect AS (
    SELECT
        h.rank, h.reason, h.seq, h.operation, h.waiting, h.detail,
        n.group_key IS NULL AS unlisted,
        coalesce(n.group_name, h.group_key) AS group_name,
        coalesce(h.operation, 'collective') || ' ' || h.seq AS called,
        CASE h.waiting WHEN 1 THEN 'another rank' ELSE h.waiting || ' other ranks' END AS others
    FROM hang_suspect AS h
    LEFT JOIN named AS n ON h.group_key = n.group_key
)

SELECT
    h.rank,
    TRUE AS culprit,
    h.reason,
    h.group_name,
    h.seq,
    h.operation,
    h.waiting,
    CASE WHEN h.reason = 'inside' OR m.ranks > 0 OR h.unlisted THEN 'medium' ELSE 'high' END AS confidence,
    coalesce(own.last_step, (SELECT min(last_step) FROM step)) + 1 AS step,
    c.time,
    c.source,
    CAST(NULL AS BIGINT) AS line,
    CASE h.reason
        WHEN 'not joined' THEN h.others || CASE h.waiting WHEN 1 THEN ' waits in ' ELSE ' wait in ' END || h.called || ' of group ' || h.group_name || ', which it has not entered: '
        WHEN 'mismatch' THEN 'it entered ' || coalesce(h.operation, 'collective') || ' as number ' || h.seq || ' of group ' || h.group_name || ', ' || h.others || ' something else: '
        WHEN 'behind' THEN h.called || ' of group ' || h.group_name || ' never ended on it: '
        ELSE 'it is stuck inside the call of ' || h.called || ' of group ' || h.group_name || ': '
    END
    || h.detail
    || coalesce('; its last call was ' || c.operation || ' ' || c.seq || coalesce(' from ' || c.place, ''), '')
    || coalesce('; it was in ' || t.place, '') AS text
FROM suspect AS h
LEFT JOIN rank_last_call AS c ON h.rank = c.rank
LEFT JOIN step AS own ON h.rank = own.rank
LEFT JOIN rank_stack AS t ON h.rank = t.rank
CROSS JOIN mute AS m
ORDER BY h.rank
