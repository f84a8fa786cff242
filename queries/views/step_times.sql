/*---
title = "Step time of the job"
doc   = "One row per run and step: ranks wait for each other, so a step takes as long as its slowest rank, and N ranks are not N samples. The place and time are those of the slowest rank."
keep = true
reads = ["metrics", "rank_step_times"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
seconds = "DOUBLE"
source = "VARCHAR"
line = "BIGINT"
time = "BIGINT"
[[case]]
name = "the slowest rank counts"
given.metrics = """
run_id | rank | step | name      | value | source | line | time
a      | 0    | 1    | step_time | 0.5   | l      | 1    | 10
a      | 1    | 1    | step_time | 0.75  | m      | 2    | 11
a      | 2    | 1    | step_time | 0.5   | n      | 3    | 12
a      | 0    | 1    | loss      | 3     | l      | 4    | 13
a      | 0    | 2    | step_time | nan   | l      | 5    | 14
"""
given.rank_step_times = """
run_id | rank | step | seconds | origin  | source | line
a      | 1    | 1    | 0.75    | printed | m      | 2
b      | 0    | 1    | 2       | stamps  | p      | 6
b      | 1    | 1    | 3       | stamps  | o      | 7
"""
expect = """
run_id | step | seconds | source | line | time
a      | 1    | 0.75    | m      | 2    | 11
b      | 1    | 3       | o      | 7    |
"""
---*/
-- What is printed comes straight from the metrics: a row per rank and step of a large run is more than memory holds.
SELECT
    run_id, step, max(value) AS seconds,
    arg_max(source, value) AS source, arg_max(line, value) AS line, arg_max(time, value) AS time
FROM metrics
WHERE name = 'step_time' AND step IS NOT NULL AND isfinite(value) AND value > 0
GROUP BY run_id, step
UNION ALL
SELECT
    run_id, step, max(seconds) AS seconds,
    arg_max(source, seconds) AS source, arg_max(line, seconds) AS line, arg_max(time, seconds) AS time
FROM rank_step_times
WHERE origin <> 'printed'
GROUP BY run_id, step
ORDER BY run_id, step
