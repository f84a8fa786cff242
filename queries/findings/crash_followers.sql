/*---
title    = "Only victims speak"
doc      = "Processes report that another one is gone (closed connections, a dead actor, a failed child), and no record says which one failed, or how: its own log is missing or ends without a word. Nobody is named."
fault    = "crash"
severity = "fault"
confidence = "low"
reads    = ["events", "rank_progress", "run_summary", "stop"]
summary  = "another process is gone, as {reports} of the records say; none says which one failed first{silent}"
[returns]
rank = "INTEGER"
reports = "BIGINT"
silent = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "an actor died, and nothing says why"
given.run_summary = """
end
unknown
"""
given.events = """
kind      | role    | rank | name          | message                      | after_step | line
exception | cascade |      | RayActorError | The actor died unexpectedly. | 8          | 5
"""
expect = """
rank | reports | silent | step | line
     | 1       |        | 9    | 5
"""
[[case]]
name = "two of four ranks complain"
given.run_summary = """
end
unknown
"""
given.rank_progress = """
rank
0
1
2
3
"""
given.events = """
kind      | role    | rank | name  | message | after_step | line
exception | cascade | 0    | Error | closed  | 8          | 5
exception | cascade | 3    | Error | closed  | 8          | 6
"""
expect = """
rank | reports | silent                                         | line
     | 2       | ; ranks 1, 2 trained and complain of nothing   | 5
     | 2       | ; ranks 1, 2 trained and complain of nothing   | 6
"""
[[case]]
name = "a rank failed by itself, a launcher states a code, a watchdog fired, or a person stopped it"
given.run_summary = """
end
failed
"""
given.events = """
kind      | role    | rank | name       | message | line
exception | cascade | 0    | Error      | closed  | 5
exception | root    | 1    | ValueError | bad     | 6
"""
expect = "rank | reports | step"
---*/
WITH quiet AS (  -- no accusation: their last words may be lost
    SELECT string_agg(CAST(rank AS VARCHAR), ', ' ORDER BY rank) AS ranks, count(*) AS n
    FROM rank_progress
    WHERE rank NOT IN (SELECT o.rank FROM events AS o WHERE o.rank IS NOT NULL AND o.kind IN ('exception', 'stack', 'signal', 'exit'))
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    count(*) OVER () AS reports,
    CASE
        WHEN e.rank IS NULL OR q.n = 0 THEN ''
        WHEN q.n > 16 THEN '; ' || q.n || ' ranks trained and complain of nothing'
        ELSE '; ranks ' || q.ranks || ' trained and complain of nothing'
    END AS silent,
    coalesce(e.step, e.after_step + 1) AS step,
    e.time, e.source, e.line,
    concat_ws(': ', e.name, e.message) AS text
FROM events AS e
CROSS JOIN quiet AS q
WHERE
    e.kind = 'exception' AND e.role = 'cascade'
    AND (e.run_id, e.source, e.line) NOT IN (SELECT (s.run_id, s.source, s.line) FROM stop AS s)
    AND NOT EXISTS (SELECT 1 FROM run_summary AS s WHERE s."end" = 'completed')
    AND NOT EXISTS (
        SELECT 1 FROM events AS o
        WHERE o.role = 'root' OR o.kind IN ('watchdog', 'store') OR (o.kind IN ('exit', 'signal') AND o.code <> 0)
    )
ORDER BY e.time NULLS LAST, e.source, e.line
