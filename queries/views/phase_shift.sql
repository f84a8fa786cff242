/*---
title = "What each phase gained where steps became slower"
doc   = "At the largest lasting rise of the step time: seconds per step that each timed phase, and the time outside all of them, gained (median after less median before), and its share of the whole gain. Only where phases were timed on both sides."
reads = ["step_change", "phase_steps"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
phase = "VARCHAR"
gained = "DOUBLE"
share = "DOUBLE"
whole = "DOUBLE"
[[case]]
name = "half of the gain is in the all-reduce, half outside"
given.step_change = """
step | before | after | ratio | transient
13   | 1      | 3     | 3     | false
20   | 1      | 2     | 2     | false
"""
given.phase_steps = """
step | phase         | seconds
2    | bwd_allreduce | 0.25
3    | bwd_allreduce | 0.25
20   | bwd_allreduce | 1.25
21   | bwd_allreduce | 1.25
2    | fwd           | 0.5
20   | fwd           | 0.5
"""
expect = """
step | phase         | gained | share | whole
13   | bwd_allreduce | 1      | 0.5   | 2
13   | fwd           | 0      | 0     | 2
13   | outside       | 1      | 0.5   | 2
"""
[[case]]
name = "steady steps"
given.step_change = "step"
expect = "step"
---*/
WITH rise AS (
    SELECT run_id, step, after - before AS whole
    FROM step_change
    WHERE after > before AND NOT transient
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY ratio DESC) = 1
),

medians AS (
    SELECT
        r.run_id, r.step, r.whole, p.phase,
        median(p.seconds) FILTER (WHERE p.step < r.step) AS before,
        median(p.seconds) FILTER (WHERE p.step >= r.step) AS after
    FROM rise AS r
    INNER JOIN phase_steps AS p ON r.run_id = p.run_id
    GROUP BY ALL
),

gains AS (
    SELECT run_id, step, phase, after - before AS gained, whole
    FROM medians
    WHERE before IS NOT NULL AND after IS NOT NULL
),

with_rest AS (
    SELECT run_id, step, phase, gained, whole FROM gains
    UNION ALL
    SELECT run_id, step, 'outside', whole - sum(gained), whole FROM gains GROUP BY run_id, step, whole
)

SELECT run_id, step, phase, gained, gained / whole AS share, whole
FROM with_rest
ORDER BY run_id, phase
