/*---
title = "What each phase of each rank gained where steps became slower"
doc   = "At the largest lasting rise of the step time: seconds per step that each timed phase of each rank took before and after (medians), and what the whole step gained. Only where phases were timed on both sides."
keep = true
reads = ["step_change", "rank_phase_steps"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
phase = "VARCHAR"
before = "DOUBLE"
after = "DOUBLE"
whole = "DOUBLE"
[[case]]
name = "rank 1 gains in forward, rank 0 waits for it; a phase that was not timed before"
given.step_change = """
step | before | after | ratio | transient
13   | 1      | 3     | 3     | false
20   | 1      | 2     | 2     | false
"""
given.rank_phase_steps = """
rank | step | phase         | seconds
0    | 2    | bwd_allreduce | 0.25
0    | 3    | bwd_allreduce | 0.25
0    | 20   | bwd_allreduce | 2.25
1    | 2    | fwd           | 0.5
1    | 13   | fwd           | 2.5
1    | 13   | step          | 2.5
"""
expect = """
rank | step | phase         | before | after | whole
0    | 13   | bwd_allreduce | 0.25   | 2.25  | 2
1    | 13   | fwd           | 0.5    | 2.5   | 2
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
        r.run_id, p.rank, r.step, p.phase,
        median(p.seconds) FILTER (WHERE p.step < r.step) AS before,
        median(p.seconds) FILTER (WHERE p.step >= r.step) AS after,
        any_value(r.whole) AS whole
    FROM rise AS r
    INNER JOIN rank_phase_steps AS p ON r.run_id = p.run_id
    GROUP BY r.run_id, p.rank, r.step, p.phase
)

SELECT run_id, rank, step, phase, before, after, whole
FROM medians
WHERE before IS NOT NULL AND after IS NOT NULL
ORDER BY run_id, rank, phase
