/*---
title = "Memory over steps, per rank or as the range over ranks"
doc = """The highest value of every slice of steps. Up to 8 ranks have a line each. More ranks become lowest, median and
highest of the job, beside the three ranks that gain most between the first and the last slice."""
reads = ["memory", "trace_memory_step"]
[params]
slices = { type = "INTEGER", default = 60, doc = "Number of slices at most." }
[returns]
kind = "VARCHAR"
series = "VARCHAR"
step = "BIGINT"
bytes = "DOUBLE"
[[case]]
name = "few ranks have a line each; a memory line without a step of its own takes the step before it"
params = { slices = 2 }
given.memory = """
rank | step | after_step | kind     | bytes
0    | 1    |            | host_rss | 10
0    |      | 2          | host_rss | 20
0    | 4    |            | host_rss | 5
1    | 1    |            | host_rss | 7
"""
expect = """
kind     | series | step | bytes
host_rss | rank 0 | 2    | 20
host_rss | rank 0 | 4    | 5
host_rss | rank 1 | 1    | 7
"""
---*/
WITH seen AS (
    SELECT kind, rank, coalesce(step, after_step) AS step, bytes
    FROM memory
    WHERE coalesce(step, after_step) IS NOT NULL
    UNION ALL
    SELECT
        CASE device_type WHEN 0 THEN 'host_allocated_in_trace' ELSE 'device_allocated_in_trace' END AS kind,
        rank,
        step,
        sum(allocated)::BIGINT AS bytes
    FROM trace_memory_step
    WHERE allocated IS NOT NULL
    GROUP BY ALL
),

span AS (SELECT min(step) AS low, max(step) AS high FROM seen),

sliced AS (
    SELECT
        seen.kind,
        seen.rank,
        (seen.step - span.low) * $slices // (span.high - span.low + 1) AS slice,
        arg_max(seen.step, seen.bytes) AS step,
        max(seen.bytes) AS bytes
    FROM seen CROSS JOIN span
    GROUP BY ALL
),

gains AS (
    SELECT
        kind,
        rank,
        row_number() OVER (
            PARTITION BY kind ORDER BY arg_max(bytes, slice) - arg_min(bytes, slice) DESC, rank
        ) AS place,
        count(*) OVER (PARTITION BY kind) AS ranks
    FROM sliced
    GROUP BY kind, rank
),

lines AS (
    SELECT
        sliced.kind,
        coalesce('rank ' || sliced.rank, 'job') AS series,
        sliced.step,
        sliced.bytes::DOUBLE AS bytes
    FROM sliced INNER JOIN gains
        ON sliced.kind = gains.kind AND sliced.rank IS NOT DISTINCT FROM gains.rank
    WHERE gains.ranks <= 8 OR gains.place <= 3
),

job AS (
    SELECT
        sliced.kind,
        max(sliced.step) AS step,
        min(sliced.bytes)::DOUBLE AS low,
        median(sliced.bytes) AS middle,
        max(sliced.bytes)::DOUBLE AS high
    FROM sliced INNER JOIN gains
        ON sliced.kind = gains.kind AND sliced.rank IS NOT DISTINCT FROM gains.rank
    WHERE gains.ranks > 8
    GROUP BY sliced.kind, sliced.slice
)

SELECT kind, series, step, bytes FROM lines
UNION ALL
SELECT kind, 'lowest' AS series, step, low AS bytes FROM job
UNION ALL
SELECT kind, 'median' AS series, step, middle AS bytes FROM job
UNION ALL
SELECT kind, 'highest' AS series, step, high AS bytes FROM job
ORDER BY kind, series, step
