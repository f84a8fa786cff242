/*---
title      = "PyTorch itself names ranks that did not come"
doc        = "monitoredBarrier names the ranks that did not reach it, the desync report of the NCCL watchdog those that did not join. Their numbers are ranks inside a process group; they count as global ranks only where the reporter's own two numbers agree, or where all reports come from one group."
fault      = "comm_hang"
severity   = "fault"
weight     = 2
confidence = "medium"
reads      = ["events", "rank_progress"]
summary    = "rank {ranks}: {text}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
reports = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "monitored barrier and desync report"
given.events = """
kind            | rank | source | line | detail                              | message
barrier_missing | 0    | log    | 4    | {"group_rank":"0","ranks":"2, 5"}   | [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 5000 ms
desync          |      | log    | 9    | {"ranks":"2","finished":"11","missed":"12","stuck":null} | [2] finished collective #11, but didn't join collective #12
desync          |      | log    | 10   | {"ranks":"1","finished":null,"missed":null,"stuck":"12"} | [1] joined but didn't finish collective #12
"""
expect = """
rank | reports | line | text
2    | 2       | 4    | [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 5000 ms
5    | 1       | 4    | [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 5000 ms
"""
[[case]]
name = "the barrier of a group whose rank 0 is another global rank"
given.events = """
kind            | rank | source | line | detail                           | message
barrier_missing | 4    | log    | 4    | {"group_rank":"0","ranks":"2"}   | [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 5000 ms
"""
expect = "rank | reports"
---*/
WITH said AS (
    SELECT
        CAST(trim(unnest(string_split(json_extract_string(detail, '$.ranks'), ','))) AS INTEGER) AS rank,
        time,
        source,
        line,
        -- The sentence may stand inside a JSON file or a table.
        coalesce(
            nullif(regexp_extract(message, '\[Rank \d+\]: Ranks? [\d, ]+ failed to pass monitoredBarrier in \d+ ms'), ''),
            message
        ) AS message
    FROM events
    WHERE
        (
            kind = 'barrier_missing'
            AND (rank IS NULL OR rank = CAST(json_extract_string(detail, '$.group_rank') AS INTEGER))
        )
        OR (kind = 'desync' AND json_extract_string(detail, '$.missed') IS NOT NULL)
),

mixed AS (  -- a group whose ranks are numbered otherwise reports too
    SELECT count(*) > 0 AS yes
    FROM events
    WHERE
        (
            kind = 'barrier_missing'
            AND rank <> CAST(json_extract_string(detail, '$.group_rank') AS INTEGER)
        )
        OR (kind = 'watchdog' AND rank <> CAST(json_extract_string(detail, '$.group_rank') AS INTEGER))
)

SELECT
    s.rank,
    TRUE AS culprit,
    count(*) AS reports,
    max(p.last_step) + 1 AS step,
    min(s.time) AS time,
    arg_min(s.source, s.line) AS source,
    min(s.line) AS line,
    trim(arg_min(s.message, s.line)) AS text
FROM said AS s
LEFT JOIN rank_progress AS p ON s.rank = p.rank
WHERE NOT (SELECT yes FROM mixed)
GROUP BY s.rank
ORDER BY s.rank
