/*---
title    = "Shared memory was refused"
doc      = "A file in /dev/shm could not be made or grown: tensors of loader processes and segments of NCCL lie there. A container has 64 MiB of it unless told otherwise. A worker of a data loader that died by SIGBUS counts too: torch takes it for that (torch/csrc/DataLoader.cpp)."
fault    = "oom"
severity = "evidence"
reads    = ["events"]
summary  = "shared memory was refused: {text}"
[returns]
rank = "INTEGER"
asked = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "shared memory"
given.events = """
kind        | name          | rank | code | line | message
oom         | shared_memory | 1    |      | 6    | words
data_worker | Bus error     | 2    | -7   | 8    | words
"""
expect = """
rank | line | text
1    | 6    | words
2    | 8    | words
"""
[[case]]
name = "the host's"
given.events = """
kind | name
oom  | host
"""
expect = "rank"
---*/
SELECT rank, bytes AS asked, time, source, line, message AS text
FROM events
WHERE (kind = 'oom' AND name = 'shared_memory') OR (kind = 'data_worker' AND code = -7)
ORDER BY time NULLS LAST, source, line
