/*---
title = "Step time of the job"
doc   = "One row per run and step: ranks wait for each other, so a step takes as long as its slowest rank, and N ranks are not N samples."
materialize = true
reads = ["rank_step_times"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
seconds = "DOUBLE"
median_seconds = "DOUBLE"
ranks = "BIGINT"
slowest_rank = "INTEGER"
[[case]]
name = "the slowest rank counts"
given.rank_step_times = """
rank | step | seconds
0    | 1    | 0.5
1    | 1    | 0.75
2    | 1    | 0.5
"""
expect = """
step | seconds | median_seconds | ranks | slowest_rank
1    | 0.75    | 0.5            | 3     | 1
"""
---*/
SELECT
    run_id, step,
    max(seconds) AS seconds,
    median(seconds) AS median_seconds,
    count(*) AS ranks,
    arg_max(rank, seconds) AS slowest_rank
FROM rank_step_times
GROUP BY run_id, step
ORDER BY run_id, step
