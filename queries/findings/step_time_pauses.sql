/*---
title    = "Pauses hold a part of the time"
doc      = "Steps that took more than three times the usual (the median of the run), after its first twentieth, where together they hold a tenth of the time or more: checkpoints, evaluation, printing of statistics, garbage collection, a data set that starts anew or a stalling file system. The usual step is not slower, so it is no fault by itself."
severity = "note"
reads    = ["step_times", "scheduled_steps"]
summary  = "{pauses} steps took more than three times the usual {usual} s and hold {percent} % of the time, the longest {longest} s at step {step}; {scheduled} of them follow a checkpoint, an evaluation or a restart; half of them come within {gap} steps of the one before"
[params]
factor = { type = "DOUBLE", default = 3, doc = "Ratio to the usual step time from which a step is a pause." }
least = { type = "DOUBLE", default = 0.1, doc = "Share of the time that pauses have to hold." }
few = { type = "BIGINT", default = 3, doc = "Pauses under which they are single events." }
[returns]
rank = "INTEGER"
step = "BIGINT"
pauses = "BIGINT"
scheduled = "BIGINT"
usual = "DOUBLE"
longest = "DOUBLE"
percent = "DOUBLE"
gap = "DOUBLE"
[[case]]
name = "every second step, one of them after a checkpoint"
given.step_times = """
step | seconds
1    | 1
2    | 1
3    | 5
4    | 1
5    | 7
6    | 1
7    | 5
8    | 1
9    | 1
"""
given.scheduled_steps = """
step | reason
5    | checkpoint
5    | evaluation
"""
expect = """
step | pauses | scheduled | usual | longest | percent | gap
5    | 3      | 1         | 1     | 7       | 64      | 2
"""
[[case]]
name = "a slow start, and two pauses"
given.step_times = """
step | seconds
1    | 90
2    | 1
3    | 5
4    | 1
5    | 7
6    | 1
7    | 1
8    | 1
"""
expect = "step"
---*/
WITH numbered AS (
    SELECT
        t.step, t.seconds,
        row_number() OVER (ORDER BY t.step) AS place,
        count(*) OVER () AS steps,
        median(t.seconds) OVER () AS usual,
        s.step IS NOT NULL AS scheduled
    FROM step_times AS t
    LEFT JOIN (SELECT DISTINCT step FROM scheduled_steps WHERE reason <> 'profiler') AS s ON t.step = s.step
),

counted AS (
    SELECT step, seconds, usual, scheduled, seconds > $factor * usual AS pause
    FROM numbered
    WHERE place > greatest(1, steps / 20)
),

gaps AS (
    SELECT median(gap) AS gap
    FROM (SELECT step - lag(step) OVER (ORDER BY step) AS gap FROM counted WHERE pause)
)

SELECT
    CAST(NULL AS INTEGER) AS rank,
    arg_max(c.step, c.seconds) FILTER (WHERE c.pause) AS step,
    count(*) FILTER (WHERE c.pause) AS pauses,
    count(*) FILTER (WHERE c.pause AND c.scheduled) AS scheduled,
    any_value(c.usual) AS usual,
    max(c.seconds) FILTER (WHERE c.pause) AS longest,
    round(100 * sum(c.seconds - c.usual) FILTER (WHERE c.pause) / sum(c.seconds)) AS percent,
    any_value(g.gap) AS gap
FROM counted AS c
CROSS JOIN gaps AS g
HAVING pauses >= $few AND sum(c.seconds - c.usual) FILTER (WHERE c.pause) >= $least * sum(c.seconds)
