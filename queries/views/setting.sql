/*---
title = "Every setting of a run, command lines taken apart"
doc   = "Keys of configuration files and dumps, and the options of command lines (`--micro-batch-size 4` and `--micro_batch_size=4` are one key, in underscores). Values are JSON texts."
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
---*/
WITH pieces AS (
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

SELECT run_id, kind, key, value, source, line FROM config WHERE key <> 'command'
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
