/*---
title = "Who makes the others wait, per profiled step"
doc = """
One row per rank and profiled step. `caused` is the time that the step would have been shorter had the rank arrived with
the last of the others (summed over the collectives where it came last); `others_waited` is what the other ranks waited in
them, `waited` what the rank itself waited. Only trusted matches count, and only leads beyond twice the clocks'
uncertainty and twice the spread of the ends. Where not all ranks of the group are seen, the last one seen need not be the
last: it counts if it then stayed for less than a quarter of its lead. Two ranks that send and receive are neighbours of a
pipeline, one of which always waits, and do not count. `unclear` is the rank's own time in collectives that do not count:
it may have waited there.
"""
reads = ["aligned_collective", "trace_collective", "trace_step", "trace_file", "process"]
[returns]
run_id = "VARCHAR"
step = "BIGINT"
rank = "INTEGER"
collectives = "BIGINT"
times_last = "BIGINT"
caused = "BIGINT"
others_waited = "BIGINT"
waited = "BIGINT"
unclear = "BIGINT"
step_duration = "BIGINT"
[[case]]
name = "rank 1 is last twice"
given.trace_file = "world_size\n2"
given.trace_collective = """
source | event | rank | step | start_time | end_time
a      | 3     | 0    | 3    | 100        | 130
b      | 4     | 1    | 3    | 10         | 140
b      | 1     | 1    | 3    | 700        | 740
"""
given.aligned_collective = """
collective | source | event | step | kind      | ranks | rank | wait | lead | transfer | uncertainty | end_spread | is_last | trusted
1          | a      |       | 3    | allreduce | 2     | 0    | 700  | 700  | 900      | 0           | 0          | false   | true
1          | b      | 1     | 3    | allreduce | 2     | 1    | 0    | 700  | 900      | 0           | 0          | true    | true
2          | a      |       | 3    | allreduce | 2     | 0    | 50   | 50   | 9        | 0           | 0          | false   | true
2          | b      |       | 3    | allreduce | 2     | 1    | 0    | 50   | 9        | 0           | 0          | true    | true
3          | a      | 3     | 3    | allreduce | 2     | 0    | 0    | 90   | 9        | 0           | 0          | true    | false
3          | b      | 4     | 3    | allreduce | 2     | 1    | 90   | 90   | 9        | 0           | 0          | false   | false
4          | a      |       | 3    | allreduce | 2     | 0    | 0    | 90   | 9        | 50          | 0          | true    | true
4          | b      |       | 3    | allreduce | 2     | 1    | 90   | 90   | 9        | 50          | 0          | false   | true
5          | a      |       | 3    | allreduce | 2     | 0    | 0    | 90   | 9        | 0           | 50         | true    | true
5          | b      |       | 3    | allreduce | 2     | 1    | 5    | 90   | 9        | 0           | 50         | false   | true
6          | a      |       | 3    | sendrecv  | 2     | 0    | 0    | 90   | 9        | 0           | 0          | true    | true
6          | b      |       | 3    | sendrecv  | 2     | 1    | 90   | 90   | 9        | 0           | 0          | false   | true
"""
given.trace_step = """
source | rank | step | duration
a      | 0    | 3    | 2000
b      | 1    | 3    | 2000
"""
expect = """
step | rank | collectives | times_last | caused | others_waited | waited | unclear | step_duration
3    | 0    | 4           | 0          | 0      | 0             | 750    | 30      | 2000
3    | 1    | 4           | 2          | 750    | 750           | 95     | 130     | 2000
"""
[[case]]
name = "of four ranks two are seen: who then stays long may wait for those unseen; a group of two is complete"
given.process = "world_size\n4"
given.aligned_collective = """
collective | step | kind      | ranks | group_size | rank | wait | lead | transfer | uncertainty | end_spread | is_last | trusted
1          | 3    | allreduce | 2     |            | 0    | 700  | 700  | 200      | 0           | 0          | false   | true
1          | 3    | allreduce | 2     |            | 1    | 0    | 700  | 200      | 0           | 0          | true    | true
2          | 3    | allreduce | 2     |            | 0    | 90   | 90   | 9        | 0           | 0          | false   | true
2          | 3    | allreduce | 2     |            | 1    | 0    | 90   | 9        | 0           | 0          | true    | true
3          | 3    | allreduce | 2     | 2          | 0    | 40   | 40   | 200      | 0           | 0          | false   | true
3          | 3    | allreduce | 2     | 2          | 1    | 0    | 40   | 200      | 0           | 0          | true    | true
"""
given.trace_step = """
source | rank | step | duration
a      | 0    | 3    | 2000
"""
expect = """
step | rank | collectives | times_last | caused | waited
3    | 0    | 3           | 0          | 0      | 830
3    | 1    | 3           | 2          | 130    | 0
"""
---*/
WITH counted AS (
    SELECT
        run_id, collective, source, event, step, kind, rank, ranks, group_size, wait, lead, transfer, uncertainty, end_spread,
        is_last
    FROM aligned_collective
    WHERE trusted AND (kind NOT IN ('sendrecv', 'send', 'recv') OR ranks > 2)
),

total AS (
    SELECT run_id, collective, sum(wait) AS waited FROM counted GROUP BY run_id, collective
),

step AS (
    SELECT run_id, step, CAST(median(duration) AS BIGINT) AS duration FROM trace_step GROUP BY run_id, step
),

world AS (
    SELECT run_id, max(world_size) AS size
    FROM (
        SELECT run_id, world_size FROM trace_file
        UNION ALL
        SELECT run_id, world_size FROM process
    )
    GROUP BY run_id
),

judged AS (
    SELECT
        c.run_id, c.step, c.rank, c.wait, c.lead, t.waited AS others_waited,
        c.is_last AND c.lead > 2 * greatest(c.uncertainty, c.end_spread)
        AND (coalesce(c.ranks >= coalesce(c.group_size, w.size), FALSE) OR 4 * c.transfer < c.lead) AS counts
    FROM counted AS c
    INNER JOIN total AS t ON t.run_id = c.run_id AND t.collective = c.collective
    LEFT JOIN world AS w ON w.run_id = c.run_id
),

open AS (
    SELECT c.run_id, c.step, c.rank, CAST(sum(c.end_time - c.start_time) AS BIGINT) AS duration
    FROM trace_collective AS c
    ANTI JOIN counted AS k ON k.run_id = c.run_id AND k.source = c.source AND k.event = c.event
    GROUP BY c.run_id, c.step, c.rank
)

SELECT
    j.run_id, j.step, j.rank,
    count(*) AS collectives,
    count(*) FILTER (WHERE j.counts) AS times_last,
    CAST(coalesce(sum(j.lead) FILTER (WHERE j.counts), 0) AS BIGINT) AS caused,
    CAST(coalesce(sum(j.others_waited) FILTER (WHERE j.counts), 0) AS BIGINT) AS others_waited,
    CAST(sum(j.wait) AS BIGINT) AS waited,
    coalesce(any_value(o.duration), 0) AS unclear,
    any_value(s.duration) AS step_duration
FROM judged AS j
INNER JOIN step AS s ON s.run_id = j.run_id AND s.step = j.step
LEFT JOIN open AS o ON o.run_id = j.run_id AND o.step = j.step AND o.rank = j.rank
GROUP BY j.run_id, j.step, j.rank
ORDER BY j.run_id, j.step, j.rank
