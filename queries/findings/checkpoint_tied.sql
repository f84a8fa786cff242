/*---
title    = "Tied weights of two pipeline stages have parted"
doc      = "A pipelined model keeps a copy of its tied embedding in the layer file of each stage that uses it (runtime/pipe/module.py of deepspeedai/DeepSpeed), and the copies have to stay bit-equal. No file says which weights are tied: two embeddings of one name and shape count as tied where they are bit-equal in most pairs of the run's checkpoints; then a pair that differs is named. Which of the two is wrong is not known."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "medium"
weight   = 2
reads    = ["checkpoint_shard", "checkpoint_tensor"]
summary  = "tied weights differ in checkpoint {tag}: {text}"
[returns]
tag = "VARCHAR"
step = "BIGINT"
name = "VARCHAR"
offset = "BIGINT"
end = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "equal in two checkpoints, not in the third"
given.checkpoint_shard = """
source | checkpoint | root | tag | tag_step | role  | mp | file                    | status
a0     | c/a        | c    | a   | 1        | layer | 0  | layer_00-model_states.pt | complete
a9     | c/a        | c    | a   | 1        | layer | 0  | layer_09-model_states.pt | complete
b0     | c/b        | c    | b   | 2        | layer | 0  | layer_00-model_states.pt | complete
b9     | c/b        | c    | b   | 2        | layer | 0  | layer_09-model_states.pt | complete
d0     | c/d        | c    | d   | 3        | layer | 0  | layer_00-model_states.pt | complete
d9     | c/d        | c    | d   | 3        | layer | 0  | layer_09-model_states.pt | complete
"""
given.checkpoint_tensor = """
source | path                   | kind      | name                   | shape  | numel | zeros | content | offset | bytes
a0     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | aa      | 64     | 32
a9     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | aa      | 64     | 32
b0     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | bb      | 64     | 32
b9     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | bb      | 64     | 32
d0     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | dd      | 64     | 32
d9     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | ee      | 64     | 32
"""
expect = """
tag | step | name                   | offset | end | source | text
d   | 3    | word_embeddings.weight | 64     | 96  | d0     | word_embeddings.weight of d0 and d9 is bit-equal in 2 of 3 pairs, not in this one
"""
[[case]]
name = "embeddings of one name that were never equal, and blocks that start alike"
given.checkpoint_shard = """
source | checkpoint | root | tag | tag_step | role  | mp | file                     | status
a0     | c/a        | c    | a   | 1        | layer | 0  | layer_00-model_states.pt | complete
a9     | c/a        | c    | a   | 1        | layer | 0  | layer_09-model_states.pt | complete
b0     | c/b        | c    | b   | 2        | layer | 0  | layer_00-model_states.pt | complete
b9     | c/b        | c    | b   | 2        | layer | 0  | layer_09-model_states.pt | complete
"""
given.checkpoint_tensor = """
source | path                   | kind      | name                   | shape  | numel | zeros | content | offset | bytes
a0     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | aa      | 64     | 32
a9     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | ab      | 64     | 32
b0     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | bb      | 64     | 32
b9     | word_embeddings.weight | parameter | word_embeddings.weight | [4, 2] | 8     | 0     | bc      | 64     | 32
a0     | mlp.weight             | parameter | mlp.weight             | [4, 2] | 8     | 0     | cc      | 64     | 32
a9     | mlp.weight             | parameter | mlp.weight             | [4, 2] | 8     | 0     | cc      | 64     | 32
b0     | mlp.weight             | parameter | mlp.weight             | [4, 2] | 8     | 0     | cd      | 64     | 32
b9     | mlp.weight             | parameter | mlp.weight             | [4, 2] | 8     | 0     | ce      | 64     | 32
"""
expect = "tag | source"
---*/
WITH copies AS (
    SELECT
        shard.run_id, shard.root, shard.checkpoint, shard.tag, shard.tag_step AS step, shard.mp, shard.file, shard.source,
        tensor.name, tensor.shape, tensor.dtype, tensor.content, tensor."offset", tensor.bytes
    FROM checkpoint_tensor AS tensor
    INNER JOIN checkpoint_shard AS shard ON tensor.run_id = shard.run_id AND tensor.source = shard.source
    WHERE
        shard.role = 'layer' AND shard.status = 'complete' AND tensor.kind = 'parameter' AND tensor.content IS NOT NULL
        AND len(tensor.shape) = 2 AND regexp_matches(lower(tensor.name), 'emb|wte') AND tensor.zeros < tensor.numel
),

pairs AS (
    SELECT
        a.*, b.source AS other, a.content = b.content AS equal,
        count(*) OVER (PARTITION BY a.run_id, a.root, a.name, a.file, b.file) AS pairs,
        count(*) FILTER (WHERE a.content = b.content) OVER (PARTITION BY a.run_id, a.root, a.name, a.file, b.file) AS equals
    FROM copies AS a
    INNER JOIN copies AS b
        ON
            a.run_id = b.run_id AND a.checkpoint = b.checkpoint AND a.mp IS NOT DISTINCT FROM b.mp AND a.name = b.name
            AND a.shape = b.shape AND a.dtype IS NOT DISTINCT FROM b.dtype AND a.file < b.file
)

SELECT
    tag, step, name, "offset", "offset" + bytes AS "end", source,
    name || ' of ' || source || ' and ' || other || ' is bit-equal in ' || equals || ' of ' || pairs || ' pairs, not in this one' AS text
FROM pairs
WHERE NOT equal AND 2 * equals > pairs
ORDER BY step, tag, source, name
