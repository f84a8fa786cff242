/*---
title = "Steps that are no ordinary ones"
doc   = "Steps at which a checkpoint was written, an evaluation ran or a restart began, and the step after each (its time may hold the work). They are set aside where typical step times are compared, and shown."
reads = ["event", "metric"]
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
)

SELECT DISTINCT run_id, step + later AS step, reason
FROM stated
CROSS JOIN (VALUES (0), (1)) AS t (later)
ORDER BY run_id, step, reason
