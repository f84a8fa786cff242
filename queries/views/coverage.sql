/*---
title = "What was read of each run"
doc   = "Files by what became of them, issues, and the ranks that left a log, a trace or a Flight Recorder dump."
reads = ["source", "issue", "run_summary", "rank_evidence"]
[returns]
run_id = "VARCHAR"
ranks_expected = "INTEGER"
ranks_with_log = "BIGINT"
ranks_with_trace = "BIGINT"
ranks_with_dump = "BIGINT"
files_seen = "BIGINT"
files_read = "BIGINT"
files_unknown = "BIGINT"
files_failed = "BIGINT"
issues = "BIGINT"
[[case]]
name = "files and ranks are counted"
given.source = """
source | status
a      | read
b      | partial
c      | unknown
d      | failed
"""
given.issue = """
source | kind
b      | truncated
"""
given.run_summary = """
name | world_size
run  | 2
"""
given.rank_evidence = """
rank | log  | trace | dump
0    | true | true  | false
1    | true | false | false
"""
expect = """
ranks_expected | ranks_with_log | ranks_with_trace | ranks_with_dump | files_seen | files_read | files_unknown | files_failed | issues
2              | 2              | 1                | 0               | 4          | 2          | 1             | 1            | 1
"""
---*/
WITH files AS (
    SELECT
        run_id,
        count(*) AS files_seen,
        count(*) FILTER (WHERE status IN ('read', 'partial')) AS files_read,
        count(*) FILTER (WHERE status IN ('unknown', 'empty')) AS files_unknown,
        count(*) FILTER (WHERE status = 'failed') AS files_failed
    FROM source
    GROUP BY run_id
),

issues AS (
    SELECT run_id, count(*) AS issues FROM issue GROUP BY run_id
),

ranks AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE log) AS ranks_with_log,
        count(*) FILTER (WHERE trace) AS ranks_with_trace,
        count(*) FILTER (WHERE dump) AS ranks_with_dump
    FROM rank_evidence
    GROUP BY run_id
)

SELECT
    f.run_id,
    s.world_size AS ranks_expected,
    coalesce(r.ranks_with_log, 0) AS ranks_with_log,
    coalesce(r.ranks_with_trace, 0) AS ranks_with_trace,
    coalesce(r.ranks_with_dump, 0) AS ranks_with_dump,
    f.files_seen, f.files_read, f.files_unknown, f.files_failed,
    coalesce(i.issues, 0) AS issues
FROM files AS f
LEFT JOIN run_summary AS s ON f.run_id = s.name
LEFT JOIN ranks AS r ON f.run_id = r.run_id
LEFT JOIN issues AS i ON f.run_id = i.run_id
ORDER BY f.run_id
