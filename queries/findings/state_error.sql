/*---
title    = "The exception is one of a checkpoint"
doc      = "An exception of loading: another world size (deepspeed/runtime/zero/stage_1_and_2.py), keys or shapes that the model does not have, groups that the optimizer does not have, a file that cannot be read."
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
name = "keys that differ"
given.own_exception = """
rank | text                                                 | of_memory | source | line
0    | RuntimeError: Error(s) in loading state_dict for GPT | false     | log    | 5
"""
expect = """
rank | line
0    | 5
"""
[[case]]
name = "another exception"
given.own_exception = """
rank | text                   | of_memory | source | line
0    | ValueError: bad sample | false     | log    | 5
"""
expect = "rank"
---*/
SELECT rank, time, source, line, text
FROM own_exception
WHERE
    NOT of_memory
    AND regexp_matches(
        text,
        'used a DP world size of|size mismatch for |loading state_dict|(?:Missing|Unexpected) key\(s\) in state_dict'
        || '|Unable to find latest file|PytorchStreamReader failed|invalid header or archive is corrupted|UnpicklingError'
        || '|deserializing header|SafetensorError|parameter group that doesn''t match the size|different number of parameter groups'
    )
ORDER BY time NULLS LAST, source, line
