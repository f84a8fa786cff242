/*---
title    = "The run computes with the exponent of float32"
doc      = "A setting that says bfloat16 and none that says float16, or a step that DeepSpeed skipped without a loss scale. Nothing leaves its range there that would not in float32, and there is no loss scale."
fault    = "nan_inf"
severity = "evidence"
reads    = ["setting", "events"]
summary  = "{text}"
[returns]
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "bf16 by DeepSpeed's configuration, and by transformers' argument"
given.setting = """
key          | value | source | line
bf16.enabled | true  | log    | 3
bf16         | true  | log    | 9
fp16.enabled | false | log    | 4
"""
expect = """
line | text
3    | bf16.enabled is true
"""
[[case]]
name = "fp16, and a sentence that bf16 is off"
given.setting = """
key             | value | source | line
fp16.enabled    | true  | log    | 3
bf16.enabled    | false | log    | 9
bf16            | true  | other  | 9
"""
expect = "line | text"
[[case]]
name = "DeepSpeed says that nothing is scaled"
given.events = """
kind     | source | line | detail
overflow | log    | 7    | {"unscaled": " Gradients are non-finite"}
"""
expect = """
line | text
7    | a step was skipped without a loss scale
"""
---*/
WITH stated AS (
    SELECT
        key, value, source, line,
        lower(trim(value, '"')) AS said,
        -- DeepSpeed runtime/config.py, transformers training_args.py, Megatron arguments.py, GPT-NeoX neox_args.py
        lower(key) IN ('bf16.enabled', 'bfloat16.enabled', 'bf16') AS wide,
        lower(key) IN ('fp16.enabled', 'fp16') AS narrow,
        lower(key) IN ('torch_dtype', 'params_dtype', 'precision', 'mixed_precision', 'dtype') AS named
    FROM setting
),

judged AS (
    SELECT
        key, value, source, line,
        (wide AND said IN ('true', '1')) OR (named AND regexp_full_match(said, '(torch[.])?(bfloat16|bf16(-mixed|-true)?)')) AS says_wide,
        (narrow AND said IN ('true', '1')) OR (named AND regexp_full_match(said, '(torch[.])?(float16|fp16|half|16(-mixed|-true)?)'))
            AS says_narrow
    FROM stated
    WHERE wide OR narrow OR named
),

found AS (
    SELECT source, line, key || ' is ' || value AS text
    FROM judged
    WHERE says_wide AND NOT EXISTS (SELECT 1 FROM judged AS j WHERE j.says_narrow)
    UNION ALL
    -- DeepSpeed runtime/fp16/loss_scaler.py, LossScaler.update_scale: the one that scales by a constant, mostly 1
    SELECT source, line, 'a step was skipped without a loss scale' AS text
    FROM events
    WHERE kind = 'overflow' AND json_extract_string(detail, '$.unscaled') IS NOT NULL
)

SELECT source, line, text
FROM found
ORDER BY source, line
LIMIT 1
