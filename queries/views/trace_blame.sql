/*---
title = "Who makes the others wait, per profiled step"
doc = """
One row per rank and profiled step. `caused` is the time that the step would have been shorter had the rank arrived with
the last of the others (summed over the collectives where it came last); `others_waited` is what the other ranks waited in
them, `waited` what the rank itself waited. Only trusted matches count, and only leads beyond twice the clocks'
uncertainty.
"""
reads = ["aligned_collective", "trace_step"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
rank = "INTEGER"
collectives = "BIGINT"
times_last = "BIGINT"
caused = "BIGINT"
others_waited = "BIGINT"
waited = "BIGINT"
step_duration = "BIGINT"
[[case]]
name = "rank 1 is last twice"
given.aligned_collective = """
collective | step | rank | wait | lead | uncertainty | last_rank | is_last | trusted
1          | 3    | 0    | 700  | 700  | 0           | 1         | false   | true
1          | 3    | 1    | 0    | 700  | 0           | 1         | true    | true
2          | 3    | 0    | 50   | 50   | 0           | 1         | false   | true
2          | 3    | 1    | 0    | 50   | 0           | 1         | true    | true
3          | 3    | 0    | 0    | 90   | 0           | 0         | true    | false
3          | 3    | 1    | 90   | 90   | 0           | 0         | false   | false
4          | 3    | 0    | 0    | 90   | 50          | 0         | true    | true
4          | 3    | 1    | 90   | 90   | 50          | 0         | false   | true
"""
given.trace_step = """
source | rank | step | duration
a      | 0    | 3    | 2000
b      | 1    | 3    | 2000
"""
expect = """
step | rank | collectives | times_last | caused | others_waited | waited | step_duration
3    | 0    | 3           | 0          | 0      | 0             | 750    | 2000
3    | 1    | 3           | 2          | 750    | 750           | 90     | 2000
"""
---*/
WITH total AS (
    SELECT run_id, collective, sum(wait) AS waited FROM aligned_collective GROUP BY run_id, collective
),

step AS (
    SELECT run_id, step, CAST(median(duration) AS BIGINT) AS duration FROM trace_step GROUP BY run_id, step
),

judged AS (
    SELECT
        a.run_id, a.step, a.rank, a.wait,
        CASE WHEN a.is_last AND a.lead > 2 * a.uncertainty THEN a.lead ELSE 0 END AS caused,
        CASE WHEN a.is_last AND a.lead > 2 * a.uncertainty THEN t.waited ELSE 0 END AS others_waited,
        a.is_last AND a.lead > 2 * a.uncertainty AS counts
    FROM aligned_collective AS a
    INNER JOIN total AS t ON t.run_id = a.run_id AND t.collective = a.collective
    WHERE a.trusted
)

SELECT
    j.run_id, j.step, j.rank,
    count(*) AS collectives,
    count(*) FILTER (WHERE j.counts) AS times_last,
    CAST(sum(j.caused) AS BIGINT) AS caused,
    CAST(sum(j.others_waited) AS BIGINT) AS others_waited,
    CAST(sum(j.wait) AS BIGINT) AS waited,
    any_value(s.duration) AS step_duration
FROM judged AS j
INNER JOIN step AS s ON s.run_id = j.run_id AND s.step = j.step
GROUP BY j.run_id, j.step, j.rank
ORDER BY j.run_id, j.step, j.rank
