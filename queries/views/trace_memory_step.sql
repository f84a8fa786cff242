/*---
title = "Memory at the end of each profiled step"
doc = """
One row per rank, device and profiled step, from the profiler's memory events. `device_type` is that of
c10/core/DeviceType.h (0 CPU, 1 CUDA, 6 HIP). `allocated` is the profiler's total at the end of the step; traces of 2021
state no totals, so there it is the sum of all changes since the trace began, and `counted` is true.
"""
reads = ["trace_event", "trace_step"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
end_time = "BIGINT"
device_type = "INTEGER"
device = "INTEGER"
allocated = "BIGINT"
peak = "BIGINT"
reserved = "BIGINT"
counted = "BOOLEAN"
[[case]]
name = "totals where stated, sums of changes elsewhere"
given.trace_step = """
source | rank | step | start_time | end_time
a      | 0    | 1    | 100        | 200
a      | 0    | 2    | 200        | 300
b      | 1    | 1    | 100        | 200
"""
given.trace_event = """
source | rank | ordinal | name     | ts  | bytes | allocated | reserved | device_type | device
a      | 0    | 0       | [memory] | 110 | 10    | 1010      | 2000     | 1           | 0
a      | 0    | 1       | [memory] | 190 | 5     | 1015      | 2000     | 1           | 0
a      | 0    | 2       | [memory] | 250 | -9    | 1006      | 2000     | 1           | 0
b      | 1    | 0       | [memory] | 50  | 7     |           |          | 0           | -1
b      | 1    | 1       | [memory] | 150 | -3    |           |          | 0           | -1
"""
expect = """
rank | step | device_type | device | allocated | peak | reserved | counted
0    | 1    | 1           | 0      | 1015      | 1015 | 2000     | false
0    | 2    | 1           | 0      | 1006      | 1006 | 2000     | false
1    | 1    | 0           | -1     | 4         | 4    |          | true
"""
---*/
WITH change AS (
    SELECT
        run_id, source, ordinal, ts, device_type, device, reserved,
        allocated IS NULL AS counted,
        coalesce(
            allocated,
            sum(bytes) OVER (PARTITION BY run_id, source, device_type, device ORDER BY ts, ordinal)
        ) AS allocated
    FROM trace_event
    WHERE name = '[memory]' AND ts IS NOT NULL AND bytes IS NOT NULL
)

SELECT
    s.run_id, s.source, s.rank, s.step, s.end_time,
    c.device_type, c.device,
    CAST(arg_max(c.allocated, (c.ts, c.ordinal)) AS BIGINT) AS allocated,
    CAST(max(c.allocated) AS BIGINT) AS peak,
    max(c.reserved) AS reserved,
    bool_or(c.counted) AS counted
FROM trace_step AS s
INNER JOIN change AS c
    ON c.run_id = s.run_id AND c.source = s.source AND c.ts >= s.start_time AND c.ts <= s.end_time
GROUP BY ALL
ORDER BY s.run_id, s.rank, s.source, c.device_type, c.device, s.step
