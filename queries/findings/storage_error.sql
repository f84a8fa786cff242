/*---
title    = "The disk, a quota or a file system failed"
doc      = "An exception of a full disk, a used-up quota, or a file system that failed or is read-only, also in the words of torch's archive writer (caffe2/serialize/inline_container.cc). Shared memory is no disk."
fault    = "crash"
severity = "evidence"
reads    = ["events", "outlived"]
summary  = "{text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.events = """
kind      | role | rank | name    | message                            | source | line
exception | root | 0    | OSError | [Errno 28] No space left on device | log    | 5
exception | root | 1    | RuntimeError | [enforce fail at inline_container.cc:664] . unexpected pos 4160 vs 4054 | log | 7
"""
expect = """
rank | line
0    | 5
1    | 7
"""
[[case]]
name = "it does not"
given.events = """
kind      | role | rank | name    | message                   | source | line
exception | root | 0    | OSError | No space left on /dev/shm | log    | 5
oom       | root | 0    | shared_memory |                     | log    | 5
exception | root | 1    | FileNotFoundError | a.bin           | log    | 7
"""
expect = "rank"
---*/
SELECT e.rank, e.time, e.source, e.line, e.name || ': ' || coalesce(e.message, '') AS text
FROM events AS e
LEFT JOIN outlived AS o
    ON e.run_id = o.run_id AND e.source = o.source AND e.line = o.line AND e.part IS NOT DISTINCT FROM o.part
WHERE
    e.kind = 'exception' AND e.role = 'root' AND coalesce(o.steps, 0) <= 2
    AND NOT EXISTS (SELECT 1 FROM events AS m WHERE m.kind = 'oom' AND m.source = e.source AND m.line = e.line)
    AND regexp_matches(
        e.name || ': ' || coalesce(e.message, ''),
        '\[Errno (?:5|28|30|107|116|121|122)\]|No space left on device|[Dd]isk quota exceeded|Read-only file system|Stale (?:NFS )?file handle'
        || '|Input/output error|Transport endpoint is not connected|PytorchStreamWriter failed writing|inline_container\.cc.*(?:unexpected pos|write failed)'
    )
ORDER BY e.time NULLS LAST, e.source, e.line
