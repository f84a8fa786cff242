/*---
title    = "The exception is one of a checkpoint"
doc      = "An exception of loading: another world size (deepspeed/runtime/zero/stage_1_and_2.py), keys or shapes that the model does not have, groups that the optimizer does not have, a file that cannot be read."
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
name = "keys that differ"
given.events = """
kind      | role | rank | name         | message                                | source | line
exception | root | 0    | RuntimeError | Error(s) in loading state_dict for GPT | log    | 5
"""
expect = """
rank | line
0    | 5
"""
[[case]]
name = "another exception"
given.events = """
kind      | role | rank | name       | message    | source | line
exception | root | 0    | ValueError | bad sample | log    | 5
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
        'used a DP world size of|size mismatch for |loading state_dict|(?:Missing|Unexpected) key\(s\) in state_dict'
        || '|Unable to find latest file|PytorchStreamReader failed|invalid header or archive is corrupted|UnpicklingError'
        || '|deserializing header|SafetensorError|parameter group that doesn''t match the size|different number of parameter groups'
    )
ORDER BY e.time NULLS LAST, e.source, e.line
