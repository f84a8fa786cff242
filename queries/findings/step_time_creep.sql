/*---
title    = "Steps take longer and longer"
doc      = "The step time of the job (max over ranks) grows all along, without one step from which on: the typical time of each of twelve stretches of the run is longer than that of the one before, by a fifth or more in all, and no single rise holds half of it. The first thirteenth is left out as warm-up. It names no rank."
fault    = "throughput"
severity = "fault"
weight   = 2
reads    = ["step_times", "scheduled_steps"]
summary  = "the time of a step grows all along, from {before} s near step {step} to {after} s near step {last_step}"
[params]
least = { type = "DOUBLE", default = 1.2, doc = "Ratio of the last stretch to the first under which it is not worth a fault." }
single = { type = "DOUBLE", default = 0.5, doc = "Share of the whole rise that a single one may hold." }
steps = { type = "BIGINT", default = 65, doc = "Steps that the run has to have." }
[returns]
rank = "INTEGER"
step = "BIGINT"
last_step = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
[[case]]
name = "twice as long in the end"
params = { steps = 13 }
given.step_times = """
step | seconds
1    | 9
2    | 1
3    | 1.1
4    | 1.2
5    | 1.3
6    | 1.4
7    | 1.5
8    | 1.6
9    | 1.7
10   | 1.8
11   | 1.9
12   | 2.0
13   | 2.1
"""
expect = """
step | last_step | before | after | ratio
2    | 13        | 1      | 2.1   | 2.1
"""
[[case]]
name = "one rise holds most of it"
params = { steps = 13 }
given.step_times = """
step | seconds
1    | 9
2    | 1
3    | 1.01
4    | 1.02
5    | 1.03
6    | 1.04
7    | 1.05
8    | 2.0
9    | 2.01
10   | 2.02
11   | 2.03
12   | 2.04
13   | 2.05
"""
expect = "step"
[[case]]
name = "steps come and go"
params = { steps = 13 }
given.step_times = """
step | seconds
1    | 9
2    | 1
3    | 1.1
4    | 1.05
5    | 1.3
6    | 1.4
7    | 1.5
8    | 1.6
9    | 1.7
10   | 1.8
11   | 1.9
12   | 2.0
13   | 2.1
"""
expect = "step"
---*/
WITH stretches AS (
    SELECT
        t.step, t.seconds,
        ntile(13) OVER (ORDER BY t.step) AS stretch,
        count(*) OVER () AS steps
    FROM step_times AS t
    LEFT JOIN (SELECT DISTINCT step FROM scheduled_steps) AS s ON t.step = s.step
    WHERE s.step IS NULL
),

levels AS (
    SELECT
        stretch,
        min(step) AS step,
        max(step) AS last_step,
        median(seconds) AS seconds
    FROM stretches
    WHERE steps >= $steps AND stretch > 1
    GROUP BY stretch
),

rises AS (
    SELECT
        step, last_step, seconds,
        seconds - lag(seconds) OVER (ORDER BY step) AS rise
    FROM levels
),

whole AS (
    SELECT
        min(step) AS step,
        max(last_step) AS last_step,
        arg_min(seconds, step) AS before,
        arg_max(seconds, step) AS after,
        min(rise) AS smallest,
        max(rise) AS largest
    FROM rises
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    step, last_step, before, after,
    after / before AS ratio
FROM whole
WHERE smallest > 0 AND after >= $least * before AND largest <= $single * (after - before)
