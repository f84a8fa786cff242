/*---
title = "Cross-rank alignment of steps: who was behind, and by how much, on every step"
doc   = "For each step and rank: its own step time, how much longer than the fastest rank it took, and how late it printed the step after the first rank did. Ranks wait for each other in collectives, so equal step times do not clear a rank: where traces exist, see the views of collectives for who arrived last."
reads = ["rank_step_times"]
[params]
least_behind = { type = "DOUBLE", default = 0.0, doc = "Seconds behind the fastest rank under which a row is left out." }
[returns]
run_id = "VARCHAR"
step = "BIGINT"
rank = "INTEGER"
seconds = "DOUBLE"
behind = "DOUBLE"
printed_late = "DOUBLE"
place = "BIGINT"
[[case]]
name = "rank 1 needs 0.2 s more than rank 0"
given.rank_step_times = """
rank | step | seconds | time
0    | 1    | 0.5     | 1000000000
1    | 1    | 0.7     | 1250000000
"""
expect = """
step | rank | seconds | behind | printed_late | place
1    | 1    | 0.7     | 0.2    | 0.25         | 1
1    | 0    | 0.5     | 0      | 0            | 2
"""
---*/
WITH compared AS (
    SELECT
        run_id, step, rank, seconds,
        seconds - min(seconds) OVER same_step AS behind,
        (time - min(time) OVER same_step) / 1e9 AS printed_late
    FROM rank_step_times
    WHERE rank IS NOT NULL
    WINDOW same_step AS (PARTITION BY run_id, step)
)

SELECT
    run_id, step, rank, seconds, behind, printed_late,
    row_number() OVER (PARTITION BY run_id, step ORDER BY seconds DESC, rank) AS place
FROM compared
WHERE behind >= $least_behind
ORDER BY run_id, step, place
