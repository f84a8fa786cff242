/*---
title    = "The disk, a quota or a file system failed"
doc      = "An exception of a full disk, a used-up quota, or a file system that failed or is read-only, also in the words of torch's archive writer (caffe2/serialize/inline_container.cc). Shared memory is no disk."
fault    = "crash"
severity = "evidence"
reads    = ["own_exception"]
summary  = "{text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.own_exception = """
rank | text                                                                                  | of_memory | source | line
0    | OSError: [Errno 28] No space left on device                                           | false     | log    | 5
1    | RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 4160 vs 4054 | false     | log    | 7
"""
expect = """
rank | line
0    | 5
1    | 7
"""
[[case]]
name = "it does not"
given.own_exception = """
rank | text                               | of_memory | source | line
0    | OSError: No space left on /dev/shm | true      | log    | 5
1    | FileNotFoundError: a.bin           | false     | log    | 7
"""
expect = "rank"
---*/
SELECT rank, time, source, line, text
FROM own_exception
WHERE
    NOT of_memory
    AND regexp_matches(
        text,
        '\[Errno (?:5|28|30|107|116|121|122)\]|No space left on device|[Dd]isk quota exceeded|Read-only file system|Stale (?:NFS )?file handle'
        || '|Input/output error|Transport endpoint is not connected|PytorchStreamWriter failed writing|inline_container\.cc.*(?:unexpected pos|write failed)'
    )
ORDER BY time NULLS LAST, source, line
