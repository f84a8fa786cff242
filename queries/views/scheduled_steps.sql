/*---
title = "Steps that are no ordinary ones"
doc   = "Steps at which a checkpoint was written, an evaluation ran or a restart began, and the step after each (its time may hold the work); steps under the profiler and the two after them (the profiler counts from 0, and its last step is written out in the next), unless it was on for half of the run or more. They are set aside where typical step times are compared, and shown."
keep = true
reads = ["event", "metric", "trace_step"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
reason = "VARCHAR"
[[case]]
name = "a checkpoint after step 20, an evaluation at step 5, a restart at step 9"
given.event = """
kind            | step | after_step
checkpoint_save |      | 20
checkpoint_save |      | 20
oom             |      | 11
"""
given.metric = """
name      | step | attempt
loss      | 1    | 0
eval_loss | 5    | 0
loss      | 12   | 0
loss      | 9    | 1
loss      | 10   | 1
"""
expect = """
step | reason
5    | evaluation
6    | evaluation
9    | restart
10   | restart
20   | checkpoint
21   | checkpoint
"""
[[case]]
name = "three profiled steps of a longer run"
given.metric = """
name | step
loss | 1
loss | 20
"""
given.trace_step = """
step | origin
3    | ProfilerStep
4    | ProfilerStep
5    | ProfilerStep
"""
expect = """
step | reason
3    | profiler
4    | profiler
5    | profiler
6    | profiler
7    | profiler
"""
[[case]]
name = "the profiler was on all the time"
given.metric = """
name | step
loss | 1
loss | 6
"""
given.trace_step = """
step | origin
1    | ProfilerStep
5    | ProfilerStep
"""
expect = "step"
---*/
WITH stated AS (
    SELECT run_id, coalesce(step, after_step) AS step, 'checkpoint' AS reason
    FROM event
    WHERE kind = 'checkpoint_save' AND coalesce(step, after_step) IS NOT NULL
    UNION
    SELECT run_id, step, 'evaluation' AS reason
    FROM metric
    WHERE regexp_matches(name, '^(eval|valid|validation|test)_') AND step IS NOT NULL
    UNION
    SELECT run_id, min(step) AS step, 'restart' AS reason
    FROM metric
    WHERE attempt > 0 AND step IS NOT NULL
    GROUP BY run_id, attempt
),

windows AS (
    SELECT run_id, min(step) AS first_step, max(step) AS last_step
    FROM trace_step
    WHERE origin = 'ProfilerStep'
    GROUP BY run_id, source
),

lengths AS (
    SELECT run_id, max(step) - min(step) + 1 AS steps FROM metric GROUP BY run_id
),

profiled AS (
    SELECT w.run_id, unnest(generate_series(w.first_step, w.last_step + 2)) AS step
    FROM windows AS w
    INNER JOIN lengths AS l ON w.run_id = l.run_id
    WHERE w.last_step - w.first_step + 1 < l.steps / 2
)

SELECT DISTINCT run_id, step + later AS step, reason
FROM stated
CROSS JOIN (VALUES (0), (1)) AS t (later)
UNION
SELECT run_id, step, 'profiler' AS reason FROM profiled
ORDER BY run_id, step, reason
