/*---
title    = "A checkpoint was not finished"
doc      = "The newest checkpoint is not the one that the tag file names, or there is no tag file, and it lacks files or holds damaged ones: the usual trace of a run that ended while it was saving. The tag file is written last (runtime/engine.py of deepspeedai/DeepSpeed)."
severity = "note"
reads    = ["checkpoint_tag"]
summary  = "the checkpoint {tag} was not finished ({whole} of {expected} files are whole); it cannot be resumed from"
[returns]
tag = "VARCHAR"
step = "BIGINT"
whole = "BIGINT"
expected = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "killed while saving"
given.checkpoint_tag = """
checkpoint | tag | step | expected | whole | complete | settled
c/a        | a   | 10   | 3        | 3     | true     | true
c/b        | b   | 20   | 3        | 1     | false    | false
"""
expect = """
tag | step | whole | expected | source | text
b   | 20   | 1     | 3        | c/b    | 1 of 3 files are whole
"""
[[case]]
name = "all complete"
given.checkpoint_tag = """
checkpoint | tag | step | expected | whole | complete | settled
c/a        | a   | 10   | 3        | 3     | true     | true
c/b        | b   | 20   | 3        | 3     | true     | false
"""
expect = "tag | step"
---*/
SELECT tag, step, whole, expected, checkpoint AS source, whole || ' of ' || expected || ' files are whole' AS text
FROM checkpoint_tag
WHERE NOT complete AND NOT settled
ORDER BY checkpoint
