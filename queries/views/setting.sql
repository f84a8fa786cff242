/*---
title = "Every setting of a run, command lines taken apart"
doc   = "Keys of configuration files and dumps, and the options of command lines (`--micro-batch-size 4` and `--micro_batch_size=4` are one key, in underscores). Values are JSON texts; what a program printed of its own values (4, True, None, 'name') is read as such."
reads = ["config"]
[returns]
run_id = "VARCHAR"
kind = "VARCHAR"
key = "VARCHAR"
value = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "options with and without a value"
given.config = """
kind      | key     | value                                                        | line
launcher  | command | "python train.py --micro-batch-size 4 --lr=-1e-4 --fp16 -x a" | 1
deepspeed | seed    | 7                                                            | 2
"""
expect = """
kind      | key              | value | line
arguments | fp16             | true  | 1
arguments | lr               | -1e-4 | 1
arguments | micro_batch_size | 4     | 1
arguments | x                | "a"   | 1
deepspeed | seed             | 7     | 2
"""
[[case]]
name = "values as Python prints them"
given.config = """
kind    | key    | value             | line
trainer | a      | "4"               | 1
trainer | b      | "True"            | 2
trainer | c      | "None"            | 3
trainer | d      | "'cosine'"        | 4
trainer | e      | "5e-05"           | 5
trainer | f      | "[1, 2]"          | 6
environment | g  | "1"               | 7
"""
expect = """
kind        | key | value    | line
environment | g   | "1"      | 7
trainer     | a   | 4        | 1
trainer     | b   | true     | 2
trainer     | c   | null     | 3
trainer     | d   | "cosine" | 4
trainer     | e   | 5e-05    | 5
trainer     | f   | "[1, 2]" | 6
"""
---*/
WITH printed AS (
    SELECT run_id, kind, key, value, trim(json_extract_string(value, '$')) AS text, source, line
    FROM config
    WHERE key <> 'command'
),

pieces AS (
    SELECT
        run_id, source, line,
        trim(unnest(regexp_extract_all(
            json_extract_string(value, '$'), '(?:^| )--?[A-Za-z][A-Za-z0-9_-]*(?:[= ](?:[^ -][^ ]*|-[0-9.][^ ]*))?'
        ))) AS piece
    FROM config
    WHERE key = 'command'
),

options AS (
    SELECT
        run_id, source, line,
        replace(regexp_extract(piece, '^--?([A-Za-z0-9_-]+)', 1), '-', '_') AS key,
        regexp_extract(piece, '^[^= ]+[= ](.*)$', 1) AS value
    FROM pieces
)

SELECT
    run_id, kind, key,
    CASE
        WHEN kind NOT IN ('trainer', 'engine') THEN value
        WHEN text IN ('True', 'False') THEN lower(text)
        WHEN text = 'None' THEN 'null'
        WHEN regexp_full_match(text, '-?(0|[1-9][0-9]*)([.][0-9]+)?(e[-+]?[0-9]+)?') THEN text
        WHEN regexp_full_match(text, '[''"].*[''"]') THEN CAST(to_json(text[2:-2]) AS VARCHAR)
        ELSE value
    END AS value,
    source, line
FROM printed
UNION ALL
SELECT
    run_id, 'arguments' AS kind, key,
    CASE
        WHEN value = '' THEN 'true'
        WHEN try_cast(value AS DOUBLE) IS NOT NULL THEN value
        ELSE CAST(to_json(value) AS VARCHAR)
    END AS value,
    source, line
FROM options
ORDER BY kind, key
