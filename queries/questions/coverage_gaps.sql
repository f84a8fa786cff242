/*---
title = "What is missing, in sentences"
reads = ["rank_evidence", "coverage", "run_summary", "checkpoint_file", "trace_file"]
[returns]
run_id = "VARCHAR"
sentence = "VARCHAR"
[[case]]
name = "one rank left no log"
given.run_summary = """
name | world_size
run  | 2
"""
given.coverage = """
files_unknown | files_failed
0             | 0
"""
given.rank_evidence = """
rank | log   | trace | dump
0    | true  | false | false
1    | false | false | false
"""
expect = """
sentence
No log of rank 1.
"""
[[case]]
name = "nothing is missing where a kind of evidence was never collected"
given.run_summary = """
name | world_size
run  | 1
"""
given.coverage = """
files_unknown | files_failed
0             | 0
"""
given.rank_evidence = """
rank | log  | trace | dump
0    | true | false | false
"""
expect = "sentence"
[[case]]
name = "two traces of nobody known; that of a single process needs no rank"
given.run_summary = """
name | world_size
run  | 2
one  | 1
"""
given.trace_file = """
run_id | source | rank | start
run    | a      | 0    | 5
run    | b      |      | 5
run    | c      |      | 5
one    | d      |      | 5
"""
expect = """
run_id | sentence
run    | Traces whose rank is not known: 2 (b, c); ingest with --rank-map states it.
"""
[[case]]
name = "a large checkpoint file was read for its structure only"
given.run_summary = """
name | world_size
run  | 1
"""
given.rank_evidence = """
rank | log
0    | true
"""
given.checkpoint_file = """
source | checked   | status
a      | structure | complete
b      | values    | complete
"""
expect = """
sentence
The tensors of 1 checkpoint files were not read, only their structure; ingest with --checkpoints deep reads them.
"""
---*/
WITH kinds AS (
    SELECT run_id, rank, 'log' AS kind, log AS there FROM rank_evidence
    UNION ALL
    SELECT run_id, rank, 'trace', trace FROM rank_evidence
    UNION ALL
    SELECT run_id, rank, 'Flight Recorder dump', dump FROM rank_evidence
),

gaps AS (
    SELECT
        run_id, kind,
        list(rank ORDER BY rank) FILTER (WHERE NOT there) AS ranks,
        bool_or(there) AS collected
    FROM kinds
    GROUP BY run_id, kind
)

SELECT
    run_id,
    printf(
        'No %s of rank %s%s.', kind, array_to_string(ranks[:12], ', '),
        CASE WHEN len(ranks) > 12 THEN printf(' and %d more', len(ranks) - 12) ELSE '' END
    ) AS sentence
FROM gaps
WHERE len(ranks) > 0 AND (collected OR kind = 'log')
UNION ALL
SELECT run_id, printf('%d files are of no known format; nothing was read from them.', files_unknown)
FROM coverage
WHERE files_unknown > 0
UNION ALL
SELECT run_id, printf('%d files could not be read.', files_failed)
FROM coverage
WHERE files_failed > 0
UNION ALL
SELECT name, 'Nothing states how many ranks the job had.'
FROM run_summary
WHERE world_size IS NULL
UNION ALL
SELECT
    t.run_id,
    printf(
        'Traces whose rank is not known: %d (%s%s); ingest with --rank-map states it.',
        count(*), array_to_string(list(t.source ORDER BY t.source)[:3], ', '), CASE WHEN count(*) > 3 THEN ', ...' ELSE '' END
    )
FROM trace_file AS t
INNER JOIN run_summary AS s ON s.name = t.run_id
WHERE t.rank IS NULL AND t."start" IS NOT NULL
GROUP BY t.run_id
HAVING greatest(count(*), max(s.world_size)) > 1
UNION ALL
SELECT
    run_id,
    printf('The tensors of %d checkpoint files were not read, only their structure; ingest with --checkpoints deep reads them.', count(*))
FROM checkpoint_file
WHERE checked = 'structure' AND status = 'complete'
GROUP BY run_id
ORDER BY run_id, sentence
