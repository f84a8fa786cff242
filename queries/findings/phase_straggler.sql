/*---
title    = "One rank's own work makes the others wait"
doc      = """
From timers that several ranks print: at the step where steps became slower, one rank gained about half of it or more in
its own work (loading data, forward, backward without the all-reduce), and no other rank gained a quarter of that. Or, from
the beginning, one rank's own work takes a fifth of a step longer than that of any other at the median, and the others
spend the difference in the all-reduce. Nobody is named unless more than half of the ranks print timers (one of each tensor group may print, and wait for
another), if two ranks gained (one may wait for the other in a collective of its tensor group), or where all wait alike; from
the beginning, neither in a pipeline, whose stages differ in their work.
"""
fault    = "throughput"
kind     = "state"
severity = "fault"
names_culprit = true
reads    = ["rank_phase_shift", "rank_phase_typical", "step_times", "run_summary", "process"]
summary  = "{text}"
[params]
gain = { type = "DOUBLE", default = 0.45, doc = "Share of the whole gain that the rank has to have gained." }
others = { type = "DOUBLE", default = 0.25, doc = "Part of its gain that no other rank may have gained." }
steps = { type = "BIGINT", default = 10, doc = "Steps that have to be timed for a rank that is slower from the beginning." }
lead = { type = "DOUBLE", default = 0.2, doc = "Share of a step by which a rank is slower from the beginning." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
phases = "VARCHAR"
seconds = "DOUBLE"
confidence = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "rank 1 gains in forward, rank 0 waits for it"
given.run_summary = """
world_size
2
"""
given.rank_phase_shift = """
rank | step | phase         | before | after | whole
0    | 13   | bwd_allreduce | 0.25   | 2.25  | 2
0    | 13   | fwd           | 0.5    | 0.5   | 2
1    | 13   | bwd_allreduce | 0.25   | 0.25  | 2
1    | 13   | fwd           | 0.5    | 2.5   | 2
"""
expect = """
rank | step | phases | seconds | confidence | text
1    | 13   | fwd    | 2       | high       | rank 1 gained 2 s per step in fwd from step 13 on, no other rank more than 0 s
"""
[[case]]
name = "two ranks gain alike"
given.run_summary = """
world_size
3
"""
given.rank_phase_shift = """
rank | step | phase | before | after | whole
0    | 13   | data  | 0.5    | 0.5   | 2
1    | 13   | data  | 0.5    | 2.5   | 2
2    | 13   | data  | 0.5    | 2.5   | 2
"""
expect = "rank"
[[case]]
name = "the others print nothing"
given.run_summary = """
world_size
8
"""
given.rank_phase_shift = """
rank | step | phase | before | after | whole
0    | 13   | data  | 0.5    | 0.5   | 2
1    | 13   | data  | 0.5    | 2.5   | 2
"""
expect = "rank"
[[case]]
name = "one of each pair prints: the other one of the pair may have gained"
given.run_summary = """
world_size
4
"""
given.rank_phase_shift = """
rank | step | phase | before | after | whole
0    | 13   | fwd   | 0.5    | 0.5   | 2
2    | 13   | fwd   | 0.5    | 2.5   | 2
"""
expect = "rank"
[[case]]
name = "three of four print: less certain"
given.run_summary = """
world_size
4
"""
given.rank_phase_shift = """
rank | step | phase         | before | after | whole
0    | 13   | bwd_allreduce | 0.5    | 2.5   | 2
0    | 13   | fwd           | 0.5    | 0.5   | 2
1    | 13   | bwd_allreduce | 0.5    | 2.5   | 2
1    | 13   | fwd           | 0.5    | 0.5   | 2
2    | 13   | fwd           | 0.5    | 2.5   | 2
"""
expect = """
rank | step | seconds | confidence
2    | 13   | 2       | medium
"""
[[case]]
name = "rank 2 is slower from the beginning, and the others wait for it"
params = { steps = 1 }
given.run_summary = """
world_size
3
"""
given.step_times = """
step | seconds
1    | 2
"""
given.rank_phase_typical = """
rank | steps | phase         | seconds
0    | 1    | fwd           | 0.5
0    | 1    | bwd_allreduce | 1.5
1    | 1    | fwd           | 0.5
1    | 1    | bwd_allreduce | 1.5
2    | 1    | fwd           | 1.5
2    | 1    | bwd_allreduce | 0.5
"""
expect = """
rank | step | phases | seconds | confidence
2    |      | fwd    | 1       | medium
"""
[[case]]
name = "the same in a pipeline: its stage has more layers"
params = { steps = 1 }
given.run_summary = """
world_size
3
"""
given.process = """
statement | rank
stage     | 0
stage     | 2
"""
given.step_times = """
step | seconds
1    | 2
"""
given.rank_phase_typical = """
rank | steps | phase         | seconds
0    | 1    | fwd           | 0.5
0    | 1    | bwd_allreduce | 1.5
1    | 1    | fwd           | 0.5
1    | 1    | bwd_allreduce | 1.5
2    | 1    | fwd           | 1.5
2    | 1    | bwd_allreduce | 0.5
"""
expect = "rank"
[[case]]
name = "rank 2 has more work, and nobody waits for it: stages of a pipeline"
params = { steps = 1 }
given.run_summary = """
world_size
3
"""
given.step_times = """
step | seconds
1    | 2
"""
given.rank_phase_typical = """
rank | steps | phase         | seconds
0    | 1    | fwd           | 0.5
0    | 1    | bwd_allreduce | 0.5
1    | 1    | fwd           | 0.5
1    | 1    | bwd_allreduce | 0.5
2    | 1    | fwd           | 1.5
2    | 1    | bwd_allreduce | 0.5
"""
expect = "rank"
---*/
WITH own AS (
    SELECT
        rank, step,
        any_value(whole) AS whole,
        sum(greatest(after - before, 0)) FILTER (WHERE phase NOT IN ('bwd_allreduce', 'pipe', 'gather', 'step')) AS gained,
        coalesce(sum(after - before) FILTER (WHERE phase IN ('bwd_allreduce', 'pipe', 'gather')), 0) AS waited,
        string_agg(phase, ', ' ORDER BY after - before DESC) FILTER (
            WHERE phase NOT IN ('bwd_allreduce', 'pipe', 'gather', 'step') AND after - before > 0.1 * whole
        ) AS phases
    FROM rank_phase_shift
    WHERE rank IS NOT NULL
    GROUP BY rank, step
),

size AS (SELECT max(world_size) AS ranks FROM run_summary),

risen AS (
    SELECT
        o.rank, o.step, o.phases, o.gained AS seconds,
        max(p.gained) AS next,
        if(median(p.waited) >= 0.5 * o.gained AND count(*) + 1 >= coalesce(z.ranks, 0), 'high', 'medium') AS confidence
    FROM own AS o
    INNER JOIN own AS p ON o.rank <> p.rank
    CROSS JOIN size AS z
    WHERE o.gained >= $gain * o.whole AND p.gained IS NOT NULL
    GROUP BY o.rank, o.step, o.phases, o.gained, z.ranks
    HAVING max(p.gained) <= $others * o.gained AND 2 * (count(*) + 1) > coalesce(z.ranks, 0)
),

-- The parts that the ranks were measured in have to be the same, or the sums cannot be compared.
always AS (
    SELECT rank, phase, seconds
    FROM rank_phase_typical
    WHERE steps >= $steps AND phase IN ('data', 'fwd', 'bwd_inner', 'bwd_allreduce')
),

typical AS (
    SELECT
        rank,
        sum(seconds) FILTER (WHERE phase <> 'bwd_allreduce') AS busy,
        max(seconds) FILTER (WHERE phase = 'bwd_allreduce') AS waited,
        string_agg(phase, ' ' ORDER BY phase) AS parts
    FROM always
    GROUP BY rank
    HAVING max(seconds) FILTER (WHERE phase = 'bwd_allreduce') IS NOT NULL
),

steady AS (
    SELECT
        t.rank, t.parts,
        t.busy - max(o.busy) AS seconds,
        max(o.busy) AS next
    FROM typical AS t
    INNER JOIN typical AS o ON t.rank <> o.rank
    CROSS JOIN size AS z
    CROSS JOIN (SELECT median(seconds) AS seconds FROM step_times) AS s
    WHERE
        NOT EXISTS (SELECT 1 FROM rank_phase_shift)
        AND NOT EXISTS (SELECT 1 FROM process WHERE statement = 'stage')
        AND NOT EXISTS (SELECT 1 FROM rank_phase_typical AS p WHERE p.phase = 'pipe')
    GROUP BY t.rank, t.parts, t.busy, t.waited, z.ranks, s.seconds
    HAVING
        t.busy - max(o.busy) >= $lead * s.seconds
        AND min(o.waited) - t.waited >= 0.5 * (t.busy - max(o.busy))
        AND bool_and(o.parts = t.parts) AND 2 * (count(*) + 1) > coalesce(z.ranks, 0)
),

largest AS (
    SELECT a.rank, arg_max(a.phase, a.seconds - o.seconds) AS phase
    FROM always AS a
    INNER JOIN (SELECT phase, median(seconds) AS seconds FROM always GROUP BY phase) AS o ON a.phase = o.phase
    WHERE a.phase <> 'bwd_allreduce'
    GROUP BY a.rank
)

SELECT
    rank,
    TRUE AS culprit,
    step, phases, seconds, confidence,
    printf('rank %d gained %.3g s per step in %s from step %d on, no other rank more than %.3g s', rank, seconds, phases, step, next) AS text
FROM risen
UNION ALL
SELECT
    s.rank,
    TRUE AS culprit,
    NULL AS step,
    l.phase AS phases,
    s.seconds,
    'medium' AS confidence,
    printf('rank %d takes %.3g s longer per step for its own work than any other (%s), which wait for it in the all-reduce', s.rank, s.seconds, l.phase) AS text
FROM steady AS s
INNER JOIN largest AS l ON s.rank = l.rank
ORDER BY rank
