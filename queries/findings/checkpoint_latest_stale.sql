/*---
title    = "The tag file points to an older checkpoint than the newest complete one"
doc      = "A run that resumes from it repeats steps. It can be meant: a user went back, or saved with save_latest=False."
fault    = "silent"
severity = "warning"
kind     = "state"
confidence = "medium"
reads    = ["checkpoint_tag"]
summary  = "{source} names {tag}, although {newest} is complete and newer"
[returns]
source = "VARCHAR"
tag = "VARCHAR"
step = "BIGINT"
newest = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "backwards"
given.checkpoint_tag = """
root | tag | step | complete | named | named_by
c    | a   | 20   | true     | true  | c/latest
c    | b   | 40   | true     | false |
"""
expect = """
source   | tag | step | newest | text
c/latest | a   | 20   | b      | c/latest names a (step 20), and b (step 40) is complete
"""
[[case]]
name = "the newer one is not complete"
given.checkpoint_tag = """
root | tag | step | complete | named | named_by
c    | a   | 20   | true     | true  | c/latest
c    | b   | 40   | false    | false |
"""
expect = "source | tag"
---*/
SELECT
    named.named_by AS source, named.tag, named.step, arg_max(newer.tag, newer.step) AS newest,
    named.named_by || ' names ' || named.tag || ' (step ' || named.step || '), and ' || arg_max(newer.tag, newer.step)
    || ' (step ' || max(newer.step) || ') is complete' AS text
FROM checkpoint_tag AS named
INNER JOIN checkpoint_tag AS newer
    ON named.run_id = newer.run_id AND named.root = newer.root AND newer.step > named.step AND newer.complete
WHERE named.named AND NOT contains(newer.tag, '_universal')
GROUP BY named.named_by, named.tag, named.step
ORDER BY named.named_by
