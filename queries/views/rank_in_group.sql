/*---
title = "How far each rank got in each process group"
doc   = """
`enqueued` is the number of the last collective that the rank is known to have enqueued, `enqueued_most` the number
it cannot have passed (null where it may have gone on unseen), `completed` the last one that it is known to have
completed. Counters of groups with point-to-point operations are left out: they may count those instead."""
reads = ["collective_statement"]
materialize = true
[returns]
group_key = "VARCHAR"
rank = "INTEGER"
gloo = "BOOLEAN"
mixed = "BOOLEAN"
enqueued = "BIGINT"
enqueued_most = "BIGINT"
launched = "BIGINT"
completed = "BIGINT"
counter = "BIGINT"
partial = "BOOLEAN"
time = "BIGINT"
[[case]]
name = "counters count; in a mixed group only entries do, and only of a dump that keeps completed operations"
given.collective_statement = """
group_key | statement | rank | seq | operation  | peer | after_seq | pending | last_enqueued | last_completed | partial
a         | status    | 0    |     |            |      |           |         | 9             | 7              | false
a         | entry     | 0    | 8   | all_reduce |      |           | true    |               |                | false
b         | status    | 0    |     |            |      |           |         | 500           | 500            | false
b         | entry     | 0    | 500 | send       | 1    | 26        | false   |               |                | false
b         | status    | 1    |     |            |      |           |         | 400           | 390            | false
b         | entry     | 1    | 400 | recv       | 0    | 26        | true    |               |                | false
"""
expect = """
group_key | rank | mixed | enqueued | enqueued_most | completed | counter
a         | 0    | false | 9        | 9             | 7         | 9
b         | 0    | true  | 26       | 26            |           | 500
b         | 1    | true  | 26       |               |           | 400
"""
---*/
WITH kept AS (  -- ranks whose dump keeps completed operations: its newest entry is the newest operation
    SELECT rank
    FROM collective_statement
    WHERE statement = 'entry' AND NOT pending AND NOT partial
    GROUP BY rank
),

whole AS (
    SELECT group_key, bool_or(peer IS NOT NULL) AS mixed, bool_or(coalesce(backend = 'gloo', FALSE)) AS gloo
    FROM collective_statement
    WHERE statement IN ('entry', 'status')
    GROUP BY group_key
),

counted AS (
    SELECT
        s.group_key,
        s.rank,
        max(s.last_enqueued) AS counter,
        max(s.last_completed) AS counter_completed,
        max(CASE WHEN s.peer IS NULL THEN s.seq ELSE s.after_seq END) AS entered,
        max(s.seq) FILTER (WHERE s.peer IS NULL AND NOT s.pending) AS entry_completed,
        bool_and(s.partial) AS partial,
        max(s.time) AS time
    FROM collective_statement AS s
    WHERE s.statement IN ('entry', 'status')
    GROUP BY s.group_key, s.rank
)

SELECT
    c.group_key,
    c.rank,
    w.gloo,
    w.mixed,
    greatest(CASE WHEN NOT w.mixed THEN c.counter END, c.entered) AS enqueued,
    CASE
        WHEN NOT w.mixed AND c.counter IS NOT NULL THEN greatest(c.counter, c.entered)
        WHEN k.rank IS NOT NULL THEN c.entered
    END AS enqueued_most,
    CASE WHEN NOT w.mixed THEN c.counter END AS launched,
    greatest(CASE WHEN NOT w.mixed THEN c.counter_completed END, c.entry_completed) AS completed,
    c.counter,
    c.partial,
    c.time
FROM counted AS c
INNER JOIN whole AS w ON c.group_key = w.group_key
LEFT JOIN kept AS k ON c.rank = k.rank
ORDER BY c.group_key, c.rank
