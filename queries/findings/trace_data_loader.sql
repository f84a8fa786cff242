/*---
title    = "Steps wait for the data loader"
doc      = """
Time within profiled steps in which the training process was in the data loader and the GPU had nothing to do (without a
GPU: in which it was in the data loader). Reported where that is at least 15 % of the median step of a rank. A rank is
named only if other ranks with traces do not show it.
"""
fault    = "throughput"
kind     = "state"
severity = "fault"
confidence = "medium"
reads    = ["trace_phase"]
summary  = "a step waits for the data loader for {share} % of its time ({milliseconds} ms) on {n} of {ranks_with_trace} ranks with traces"
[params]
least = { type = "DOUBLE", default = 0.15, doc = "Share of the step time from which waiting for data counts." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
share = "DOUBLE"
milliseconds = "DOUBLE"
steps = "BIGINT"
ranks_with_trace = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "a third of each step on the only rank"
given.trace_phase = """
source | rank | step | phase       | duration | step_duration
a      | 0    | 1    | data loader | 3000000  | 9000000
a      | 0    | 1    | gpu compute | 6000000  | 9000000
a      | 0    | 2    | data loader | 3000000  | 9000000
a      | 0    | 3    | data loader | 3000000  | 9000000
"""
expect = """
rank | culprit | share | milliseconds | steps | ranks_with_trace
0    | false   | 33    | 3            | 3     | 1
"""
[[case]]
name = "one long wait in four steps"
given.trace_phase = """
source | rank | step | phase       | duration | step_duration
a      | 0    | 1    | data loader | 8000000  | 9000000
a      | 0    | 2    | gpu compute | 9000000  | 9000000
a      | 0    | 3    | gpu compute | 9000000  | 9000000
a      | 0    | 4    | gpu compute | 9000000  | 9000000
"""
expect = "rank | share"
---*/
WITH per_step AS (
    SELECT
        run_id, rank, source, step,
        coalesce(sum(duration) FILTER (WHERE phase = 'data loader'), 0) AS waited,
        any_value(step_duration) AS step_duration
    FROM trace_phase
    WHERE step_duration > 0
    GROUP BY run_id, rank, source, step
),

per_rank AS (
    SELECT
        run_id, rank, min(source) AS source, count(*) AS steps,
        median(waited / step_duration) AS share,
        median(waited) AS waited,
        count(*) OVER (PARTITION BY run_id) AS ranks_with_trace
    FROM per_step
    GROUP BY run_id, rank
),

slow AS (
    SELECT
        run_id, rank, source, steps, share, waited, ranks_with_trace,
        count(*) OVER (PARTITION BY run_id) AS ranks_waiting
    FROM per_rank
    WHERE steps >= 3 AND share >= $least
)

SELECT
    rank,
    ranks_waiting < ranks_with_trace AS culprit,
    round(100 * share) AS share,
    round(waited / 1e6, 1) AS milliseconds,
    steps, ranks_with_trace, source,
    printf(
        'rank %s: %.1f ms in the data loader, %.0f %% of the step (median of %d profiled steps)',
        coalesce(CAST(rank AS VARCHAR), '?'), waited / 1e6, 100 * share, steps
    ) AS text
FROM slow
ORDER BY share DESC, rank
