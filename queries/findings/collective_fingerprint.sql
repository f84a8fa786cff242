/*---
title      = "Ranks called different collectives (TORCH_DISTRIBUTED_DEBUG=DETAIL)"
doc        = "Every rank that finds a mismatch reports its own call and that of one peer. The odd one out is the rank whose call is not that of the majority of all ranks; without such a majority nobody is named."
fault      = "comm_hang"
severity   = "fault"
weight     = 4
confidence = "high"
reads      = ["events", "known_rank", "rank_evidence", "rank_progress"]
summary    = "rank {ranks}: {text}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
call = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "three ranks name rank 2, rank 2 names rank 0"
given.events = """
kind     | rank | source | line | detail
mismatch | 0    | log | 1 | {"rank_a":"0","number_a":"1","operation_a":"ALLREDUCE","more_a":", TensorShape=[8], T","rank_b":"2","number_b":"1","operation_b":"BROADCAST","more_b":", TensorShape=[8], T"}
mismatch | 1    | log | 2 | {"rank_a":"1","number_a":"1","operation_a":"ALLREDUCE","more_a":", TensorShape=[8], T","rank_b":"2","number_b":"1","operation_b":"BROADCAST","more_b":", TensorShape=[8], T"}
mismatch | 2    | log | 3 | {"rank_a":"2","number_a":"1","operation_a":"BROADCAST","more_a":", TensorShape=[8], T","rank_b":"0","number_b":"1","operation_b":"ALLREDUCE","more_b":", TensorShape=[8], T"}
mismatch | 3    | log | 4 | {"rank_a":"3","number_a":"1","operation_a":"ALLREDUCE","more_a":", TensorShape=[8], T","rank_b":"2","number_b":"1","operation_b":"BROADCAST","more_b":", TensorShape=[8], T"}
"""
given.known_rank = """
rank
0
1
2
3
"""
expect = """
rank | culprit | line | text
2    | true    | 1    | BROADCAST, TensorShape=[8], T where the others call ALLREDUCE, TensorShape=[8], T (number 1)
"""
[[case]]
name = "one report of two ranks out of four"
given.events = """
kind     | rank | source | line | detail
mismatch | 0    | log | 1 | {"rank_a":"0","number_a":"1","operation_a":"ALLREDUCE","more_a":"","rank_b":"2","number_b":"1","operation_b":"BROADCAST","more_b":""}
"""
given.known_rank = """
rank
0
1
2
3
"""
expect = """
rank | culprit | text
     | false   | ALLREDUCE against BROADCAST (number 1)
"""
[[case]]
name = "two against two, in logs that state no size of the world"
given.events = """
kind     | rank | source | line | detail
mismatch | 0    | log | 1 | {"rank_a":"0","number_a":"1","operation_a":"ALLREDUCE","more_a":"","rank_b":"2","number_b":"1","operation_b":"BROADCAST","more_b":""}
mismatch | 1    | log | 2 | {"rank_a":"1","number_a":"1","operation_a":"ALLREDUCE","more_a":"","rank_b":"2","number_b":"1","operation_b":"BROADCAST","more_b":""}
mismatch | 3    | log | 3 | {"rank_a":"3","number_a":"1","operation_a":"BROADCAST","more_a":"","rank_b":"0","number_b":"1","operation_b":"ALLREDUCE","more_b":""}
"""
expect = """
rank | culprit | text
     | false   | ALLREDUCE against BROADCAST (number 1)
"""
[[case]]
name = "no report"
given.events = """
kind     | rank | name
mismatch | 0    | gloo_size
"""
expect = "rank | culprit"
---*/
WITH report AS (
    SELECT detail, rank, time, source, line
    FROM events
    WHERE
        kind = 'mismatch'
        AND json_extract_string(detail, '$.operation_a') IS NOT NULL
),

side AS (
    SELECT
        rank AS reporter, time, source, line,
        CAST(json_extract_string(detail, '$.rank_a') AS INTEGER) AS rank,
        json_extract_string(detail, '$.number_a') AS number,
        json_extract_string(detail, '$.operation_a') || json_extract_string(detail, '$.more_a') AS call
    FROM report
    UNION ALL
    SELECT
        rank AS reporter, time, source, line,
        CAST(json_extract_string(detail, '$.rank_b') AS INTEGER) AS rank,
        json_extract_string(detail, '$.number_b') AS number,
        json_extract_string(detail, '$.operation_b') || json_extract_string(detail, '$.more_b') AS call
    FROM report
),

said AS (
    SELECT rank, call, min(number) AS number, min(time) AS time, arg_min(source, line) AS source, min(line) AS line
    FROM side
    GROUP BY rank, call
),

everyone AS (  -- a log need not state the size of the world
    SELECT rank FROM known_rank
    UNION
    SELECT rank FROM rank_evidence
    UNION
    SELECT rank FROM said
),

majority AS (
    SELECT call
    FROM said
    GROUP BY call
    HAVING 2 * count(DISTINCT rank) > (SELECT greatest(count(*), max(rank) + 1) FROM everyone)
),

-- The reporter's global rank is that of its lead-in; where it differs, the group numbers its ranks otherwise.
renumbered AS (
    SELECT count(*) > 0 AS yes
    FROM report
    WHERE rank <> CAST(json_extract_string(detail, '$.rank_a') AS INTEGER)
),

odd AS (
    SELECT s.rank, s.call, s.number, s.time, s.source, s.line, m.call AS usual
    FROM said AS s
    INNER JOIN majority AS m ON s.call <> m.call
    WHERE NOT (SELECT yes FROM renumbered)
),

step AS (SELECT min(last_step) + 1 AS step FROM rank_progress WHERE rank IS NOT NULL)

SELECT
    rank,
    TRUE AS culprit,
    call,
    (SELECT step FROM step) AS step,
    time,
    source,
    line,
    call || ' where the others call ' || usual || coalesce(' (number ' || number || ')', '') AS text
FROM odd
UNION ALL
SELECT
    CAST(NULL AS INTEGER) AS rank,
    FALSE AS culprit,
    CAST(NULL AS VARCHAR) AS call,
    (SELECT step FROM step) AS step,
    min(time) AS time,
    arg_min(source, line) AS source,
    min(line) AS line,
    string_agg(DISTINCT call, ' against ' ORDER BY call) || coalesce(' (number ' || min(number) || ')', '') AS text
FROM said
HAVING count(*) > 0 AND NOT EXISTS (SELECT 1 FROM odd)
ORDER BY rank
