/*---
title = "What was not checked, in sentences"
doc   = "Kinds of evidence that a run does not have, with what they would have shown. A run without a finding is healthy only as far as it was checked."
reads = ["source", "rank_evidence", "loss_steps", "rank_progress", "memory", "trace_memory_step", "run_summary"]
[returns]
run_id = "VARCHAR"
sentence = "VARCHAR"
[[case]]
name = "a run of nothing but logs with losses on every rank"
given.source = """
format
lines
"""
given.run_summary = """
name | world_size
run  | 1
"""
given.rank_evidence = """
rank | log  | trace | dump
0    | true | false | false
"""
given.loss_steps = """
step | loss
1    | 3
"""
given.rank_progress = """
rank | losses
0    | 1
"""
given.memory = """
rank | kind     | step | bytes
0    | host_rss | 1    | 1
"""
expect = """
sentence
A single run was checked against itself: an error that leaves the numbers plausible shows only beside a twin, a run of the same job with the same seed.
No checkpoint was found, so nothing says whether the shards agree.
No profiler trace was found, so it cannot be seen for whom the others wait.
"""
[[case]]
name = "losses that name no rank"
given.source = """
format
lines
"""
given.run_summary = """
name | world_size
run  |
"""
given.rank_evidence = """
rank | log  | trace | dump
0    | true | true  | false
"""
given.loss_steps = """
step | loss
1    | 3
"""
given.memory = "rank"
expect = """
sentence
A single run was checked against itself: an error that leaves the numbers plausible shows only beside a twin, a run of the same job with the same seed.
No checkpoint was found, so nothing says whether the shards agree.
No loss names the rank that it is of, so the rank on which a NaN begins would not be seen.
No rank reported its memory, so growth would not be seen.
"""
---*/
WITH runs AS (
    SELECT DISTINCT run_id FROM source
),

facts AS (
    SELECT
        r.run_id,
        EXISTS(SELECT 1 FROM rank_evidence AS e WHERE e.run_id = r.run_id AND e.trace) AS traces,
        EXISTS(SELECT 1 FROM source AS s WHERE s.run_id = r.run_id AND s.format IN ('torch_checkpoint', 'safetensors', 'dcp')) AS checkpoints,
        (SELECT count(*) FROM rank_progress AS p WHERE p.run_id = r.run_id AND p.losses > 0) AS loss_ranks,
        EXISTS(SELECT 1 FROM loss_steps AS l WHERE l.run_id = r.run_id) AS losses,
        EXISTS (SELECT 1 FROM memory AS m WHERE m.run_id = r.run_id AND coalesce(m.step, m.after_step) IS NOT NULL)
        OR EXISTS (SELECT 1 FROM trace_memory_step AS t WHERE t.run_id = r.run_id AND t.allocated IS NOT NULL) AS memory,
        (SELECT max(s.world_size) FROM run_summary AS s WHERE s.name = r.run_id) AS world_size
    FROM runs AS r
)

SELECT
    run_id,
    'A single run was checked against itself: an error that leaves the numbers plausible shows only beside a twin, '
    || 'a run of the same job with the same seed.' AS sentence
FROM facts
UNION ALL
SELECT run_id, 'No profiler trace was found, so it cannot be seen for whom the others wait.' FROM facts WHERE NOT traces
UNION ALL
SELECT run_id, 'No checkpoint was found, so nothing says whether the shards agree.' FROM facts WHERE NOT checkpoints
UNION ALL
SELECT run_id, 'No loss was printed, so a NaN would not be seen.' FROM facts WHERE NOT losses
UNION ALL
SELECT run_id, 'No loss names the rank that it is of, so the rank on which a NaN begins would not be seen.'
FROM facts
WHERE losses AND loss_ranks = 0
UNION ALL
SELECT
    run_id,
    printf('Only %d of %d ranks printed a loss of their own, so a NaN that begins on another rank cannot be placed.', loss_ranks, world_size)
FROM facts
WHERE loss_ranks > 0 AND loss_ranks < world_size
UNION ALL
SELECT run_id, 'No rank reported its memory, so growth would not be seen.' FROM facts WHERE NOT memory
ORDER BY run_id, sentence
