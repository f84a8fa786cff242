/*---
title = "Growth of memory per profiled step"
doc = """
One row per rank and device with at least three profiled steps. `slope` is the median of the slopes between all pairs of
steps (Theil-Sen, B per step) of what is allocated at step ends; `least` and `most` are the smallest and largest change
from one step to the next. The first step is left out: it allocates what later ones reuse.
"""
reads = ["trace_memory_step"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
device_type = "INTEGER"
device = "INTEGER"
steps = "BIGINT"
slope = "DOUBLE"
least = "DOUBLE"
most = "DOUBLE"
first_step = "BIGINT"
last_step = "BIGINT"
allocated = "BIGINT"
counted = "BOOLEAN"
[[case]]
name = "grows by 100 a step after the first"
given.trace_memory_step = """
source | rank | step | device_type | device | allocated | counted
a      | 0    | 1    | 0           | -1     | 50        | false
a      | 0    | 2    | 0           | -1     | 1000      | false
a      | 0    | 3    | 0           | -1     | 1100      | false
a      | 0    | 4    | 0           | -1     | 1200      | false
"""
expect = """
rank | device_type | steps | slope | least | most | first_step | last_step
0    | 0           | 3     | 100   | 100   | 100  | 2          | 4
"""
---*/
WITH later AS (
    SELECT run_id, source, rank, device_type, device, step, allocated, counted
    FROM trace_memory_step
    QUALIFY row_number() OVER (PARTITION BY run_id, source, device_type, device ORDER BY step) > 1
),

pair AS (
    SELECT
        a.run_id, a.source, a.rank, a.device_type, a.device,
        (b.allocated - a.allocated) / CAST(b.step - a.step AS DOUBLE) AS slope,
        b.step = a.step + 1 AS adjacent
    FROM later AS a
    INNER JOIN later AS b
        ON
            b.run_id = a.run_id AND b.source = a.source AND b.device_type IS NOT DISTINCT FROM a.device_type
            AND b.device IS NOT DISTINCT FROM a.device AND b.step > a.step
),

fitted AS (
    SELECT
        run_id, source, rank, device_type, device,
        median(slope) AS slope,
        min(slope) FILTER (WHERE adjacent) AS least,
        max(slope) FILTER (WHERE adjacent) AS most
    FROM pair
    GROUP BY ALL
)

SELECT
    l.run_id, l.source, l.rank, l.device_type, l.device,
    count(*) AS steps,
    any_value(f.slope) AS slope,
    any_value(f.least) AS least,
    any_value(f.most) AS most,
    min(l.step) AS first_step,
    max(l.step) AS last_step,
    arg_max(l.allocated, l.step) AS allocated,
    bool_or(l.counted) AS counted
FROM later AS l
INNER JOIN fitted AS f
    ON
        f.run_id = l.run_id AND f.source = l.source AND f.device_type IS NOT DISTINCT FROM l.device_type
        AND f.device IS NOT DISTINCT FROM l.device
GROUP BY l.run_id, l.source, l.rank, l.device_type, l.device
HAVING count(*) >= 3
ORDER BY l.run_id, l.rank, l.source, l.device_type, l.device
