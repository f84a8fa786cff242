/*---
title    = "Memory grows with every profiled step"
doc      = """
From the profiler's memory events: what is allocated at the end of a step grows from each profiled step to the next, by
at least 64 KiB each time and never more than three times as much as the smallest growth. The first profiled step is left
out. A trace shows a few steps only, so this is a warning; the logs of the whole run decide.
"""
fault    = "oom"
kind     = "state"
severity = "warning"
confidence = "medium"
reads    = ["trace_memory_slope"]
summary  = "allocated memory of {where} grows by {bytes_per_step} B in every profiled step ({n} series of ranks and devices)"
[params]
least = { type = "DOUBLE", default = 65536.0, doc = "Growth from step to step in B under which it is noise." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
where = "VARCHAR"
bytes_per_step = "DOUBLE"
steps = "BIGINT"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "all ranks grow: nobody is named"
given.trace_memory_slope = """
source | rank | device_type | device | steps | slope  | least  | most
a      | 0    | 1           | 0      | 4     | 262144 | 262144 | 262144
b      | 1    | 1           | 1      | 4     | 262144 | 262144 | 262144
"""
expect = """
rank | culprit | where    | bytes_per_step
0    | false   | device 0 | 262144
1    | false   | device 1 | 262144
"""
[[case]]
name = "a single jump, and growth that stops"
given.trace_memory_slope = """
source | rank | device_type | device | steps | slope | least | most
a      | 0    | 0           | -1     | 4     | 16704 | 0     | 100224
b      | 1    | 0           | -1     | 2     | 99999 | 99999 | 99999
"""
expect = "rank | bytes_per_step"
---*/
WITH judged AS (
    SELECT
        run_id, source, rank, device_type, device, steps, slope,
        steps >= 4 AND least >= $least AND most <= 3 * least AS growing
    FROM trace_memory_slope
),

counted AS (
    SELECT
        run_id, source, rank, device_type, device, steps, slope, growing,
        count(DISTINCT rank) FILTER (WHERE growing) OVER (PARTITION BY run_id, device_type) AS ranks_growing,
        count(DISTINCT rank) OVER (PARTITION BY run_id, device_type) AS ranks
    FROM judged
)

SELECT
    rank,
    ranks_growing < ranks AS culprit,
    CASE WHEN device_type = 0 THEN 'the CPU' ELSE 'device ' || device END AS "where",
    slope AS bytes_per_step,
    steps, source,
    printf(
        'rank %s, %s: %+.0f B per step over %d profiled steps',
        coalesce(CAST(rank AS VARCHAR), '?'),
        CASE WHEN device_type = 0 THEN 'CPU' ELSE 'device ' || device END, slope, steps
    ) AS text
FROM counted
WHERE growing
ORDER BY slope DESC, rank, device_type, device
