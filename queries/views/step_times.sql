/*---
title = "Step time of the job"
doc   = "One row per run and step: ranks wait for each other, so a step takes as long as its slowest rank, and N ranks are not N samples."
keep = true
reads = ["metrics", "rank_step_times"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
seconds = "DOUBLE"
[[case]]
name = "the slowest rank counts"
given.metrics = """
run_id | rank | step | name      | value
a      | 0    | 1    | step_time | 0.5
a      | 1    | 1    | step_time | 0.75
a      | 2    | 1    | step_time | 0.5
a      | 0    | 1    | loss      | 3
a      | 0    | 2    | step_time | nan
"""
given.rank_step_times = """
run_id | rank | step | seconds | origin
a      | 1    | 1    | 0.75    | printed
b      | 0    | 1    | 2       | stamps
b      | 1    | 1    | 3       | stamps
"""
expect = """
run_id | step | seconds
a      | 1    | 0.75
b      | 1    | 3
"""
---*/
-- What is printed comes straight from the metrics: a row per rank and step of a large run is more than memory holds.
SELECT run_id, step, max(value) AS seconds
FROM metrics
WHERE name = 'step_time' AND step IS NOT NULL AND isfinite(value) AND value > 0
GROUP BY run_id, step
UNION ALL
SELECT run_id, step, max(seconds) AS seconds
FROM rank_step_times
WHERE origin <> 'printed'
GROUP BY run_id, step
ORDER BY run_id, step
