/*---
title    = "A checkpoint file is damaged"
doc      = "Files of settled checkpoints that are truncated, empty, zeroed, unreadable, hostile, or whose checksums or structure contradict each other, with the bytes of the first defect."
fault    = "silent"
severity = "fault"
kind     = "state"
confidence = "high"
weight   = 5
reads    = ["checkpoint_shard", "checkpoint_tag"]
summary  = "{n} checkpoint file(s) cannot be used, first {source}: {text}"
[returns]
tag = "VARCHAR"
shard_rank = "INTEGER"
status = "VARCHAR"
source = "VARCHAR"
offset = "BIGINT"
end = "BIGINT"
text = "VARCHAR"
[[case]]
name = "one shard is cut short, another empty"
given.checkpoint_tag = """
checkpoint | tag | settled
c/t        | t   | true
"""
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | rank | status    | defect                                  | offset | end  | bytes
a      | c/t        | t   | optimizer | 0  | 0    | complete  |                                         |        |      | 900
b      | c/t        | t   | optimizer | 1  | 1    | truncated | the zip directory at its end is missing | 500    | 500  | 500
d      | c/t        | t   | optimizer | 2  | 2    | empty     |                                         |        |      | 0
"""
expect = """
tag | shard_rank | status    | source | offset | text
t   | 1          | truncated | b      | 500    | truncated: the zip directory at its end is missing (byte 500)
t   | 2          | empty     | d      |        | empty: it has no bytes
"""
[[case]]
name = "whole files, and a checkpoint that was in the making"
given.checkpoint_tag = """
checkpoint | tag | settled
c/t        | t   | true
c/u        | u   | false
"""
given.checkpoint_shard = """
source | checkpoint | tag | role      | dp | rank | status    | defect  | offset | bytes
a      | c/t        | t   | optimizer | 0  | 0    | complete  |         |        | 900
b      | c/u        | u   | optimizer | 1  | 1    | truncated | cut off | 500    | 500
"""
expect = "tag | shard_rank"
---*/
SELECT
    shard.tag, shard.rank AS shard_rank, shard.status, shard.source, shard."offset", shard."end",
    shard.status || ': ' || coalesce(shard.defect, CASE shard.status WHEN 'empty' THEN 'it has no bytes' ELSE 'it could not be read' END)
    || CASE
        WHEN shard."offset" IS NULL THEN ''
        WHEN shard."end" > shard."offset" + 1 THEN ' (bytes ' || shard."offset" || ' to ' || shard."end" || ')'
        ELSE ' (byte ' || shard."offset" || ')'
    END AS text
FROM checkpoint_shard AS shard
LEFT JOIN checkpoint_tag AS tag ON shard.run_id = tag.run_id AND shard.checkpoint = tag.checkpoint
WHERE
    shard.status IN ('truncated', 'damaged', 'refused', 'foreign', 'empty', 'unreadable')
    AND coalesce(tag.settled, TRUE)
ORDER BY shard.source
