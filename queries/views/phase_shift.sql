/*---
title = "What each phase gained where steps became slower"
doc   = "At the largest lasting rise of the step time: seconds per step that each timed phase, and the time outside all of them, gained (the rank that gained most), its ratio, and its share of the whole gain (or of what the phases of one rank gained together, where they were added up over several steps). `outside` only where forward, backward and step were all timed."
reads = ["rank_phase_shift"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
phase = "VARCHAR"
gained = "DOUBLE"
ratio = "DOUBLE"
share = "DOUBLE"
whole = "DOUBLE"
[[case]]
name = "half of the gain is in the all-reduce, half outside"
given.rank_phase_shift = """
rank | step | phase         | before | after | whole
0    | 13   | bwd_allreduce | 0.25   | 1.25  | 2
0    | 13   | bwd_inner     | 0.25   | 0.25  | 2
0    | 13   | fwd           | 0.5    | 0.5   | 2
0    | 13   | step          | 0.125  | 0.125 | 2
"""
expect = """
step | phase         | gained | ratio | share | whole
13   | bwd_allreduce | 1      | 5     | 0.5   | 2
13   | bwd_inner     | 0      | 1     | 0     | 2
13   | fwd           | 0      | 1     | 0     | 2
13   | outside       | 1      |       | 0.5   | 2
13   | step          | 0      | 1     | 0     | 2
"""
[[case]]
name = "what was not timed is not outside"
given.rank_phase_shift = """
rank | step | phase | before | after | whole
     | 13   | data  | 0.25   | 0.25  | 2
"""
expect = """
step | phase | gained | share
13   | data  | 0      | 0
"""
[[case]]
name = "one rank gains in forward what the other gains in waiting"
given.rank_phase_shift = """
rank | step | phase         | before | after | whole
0    | 13   | bwd_allreduce | 0.25   | 2.25  | 2
0    | 13   | fwd           | 0.5    | 0.5   | 2
1    | 13   | bwd_allreduce | 0.25   | 0.25  | 2
1    | 13   | fwd           | 0.5    | 2.5   | 2
"""
expect = """
step | phase         | gained | share
13   | bwd_allreduce | 2      | 1
13   | fwd           | 2      | 1
"""
[[case]]
name = "timers added up over four steps"
given.rank_phase_shift = """
rank | step | phase | before | after | whole
0    | 13   | pipe  | 1      | 9     | 2
0    | 13   | fwd   | 2      | 2     | 2
"""
expect = """
step | phase | gained | share
13   | fwd   | 0      | 0
13   | pipe  | 8      | 1
"""
---*/
WITH sums AS (
    SELECT
        run_id, rank, step,
        any_value(whole) AS whole,
        sum(after - before) AS gained,
        sum(greatest(after - before, 0)) AS rises,
        bool_or(phase IN ('fwd', 'fwd_bwd')) AND bool_or(phase IN ('bwd', 'bwd_inner', 'fwd_bwd')) AND bool_or(phase = 'step') AS complete
    FROM rank_phase_shift
    GROUP BY run_id, rank, step
),

gains AS (
    SELECT run_id, step, phase, max(after - before) AS gained, arg_max(after / nullif(before, 0), after - before) AS ratio
    FROM rank_phase_shift
    GROUP BY run_id, step, phase
    UNION ALL
    SELECT run_id, step, 'outside', max(whole - gained), NULL
    FROM sums
    WHERE complete
    GROUP BY run_id, step
),

totals AS (
    SELECT run_id, any_value(whole) AS whole, greatest(any_value(whole), max(rises)) AS divisor FROM sums GROUP BY run_id
)

SELECT g.run_id, g.step, g.phase, g.gained, g.ratio, g.gained / t.divisor AS share, t.whole
FROM gains AS g
INNER JOIN totals AS t ON g.run_id = t.run_id
ORDER BY g.run_id, g.phase
