/*---
title = "Profiled steps of each rank"
doc = """
One row per rank and profiled step. A step is the profiler's own ProfilerStep annotation on the CPU (its shadow on the
GPU is left out). Where a trace has none, a step runs from the end of one optimizer step to the end of the next; where it
has neither, the whole trace is one step with number 0. `step` counts the profiler's steps, which need not be the
trainer's.
"""
reads = ["trace_file", "trace_event"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
start_time = "BIGINT"
end_time = "BIGINT"
duration = "BIGINT"
origin = "VARCHAR"
[[case]]
name = "annotation on the CPU, its shadow on the GPU ignored"
given.trace_file = """
source | rank | start | end
a      | 0    | 1000  | 9000
"""
given.trace_event = """
source | rank | ph | cat                 | name           | ts   | dur
a      | 0    | X  | user_annotation     | ProfilerStep#3 | 1000 | 500
a      | 0    | X  | gpu_user_annotation | ProfilerStep#3 | 1300 | 900
a      | 0    | X  | cpu_op              | ProfilerStep#4 | 1600 | 700
"""
expect = """
rank | step | start_time | end_time | duration | origin
0    | 3    | 1000       | 1500     | 500      | ProfilerStep
0    | 4    | 1600       | 2300     | 700      | ProfilerStep
"""
[[case]]
name = "optimizer steps stand in"
given.trace_file = """
source | rank | start | end
a      | 0    | 1000  | 9000
"""
given.trace_event = """
source | rank | ph | cat             | name                | ts   | dur
a      | 0    | X  | user_annotation | Optimizer.step#Adam | 2000 | 100
a      | 0    | X  | user_annotation | Optimizer.step#Adam | 3000 | 100
a      | 0    | X  | user_annotation | Optimizer.step#Adam | 4500 | 100
"""
expect = """
rank | step | start_time | end_time | duration | origin
0    | 1    | 2100       | 3100     | 1000     | optimizer step
0    | 2    | 3100       | 4600     | 1500     | optimizer step
"""
[[case]]
name = "neither"
given.trace_file = """
source | rank | start | end
a      | 2    | 1000  | 9000
"""
expect = """
rank | step | start_time | end_time | duration | origin
2    | 0    | 1000       | 9000     | 8000     | whole trace
"""
---*/
WITH profiler AS (
    SELECT
        run_id, source,
        CAST(regexp_extract(name, '^ProfilerStep#(\d+)', 1) AS BIGINT) AS step,
        arg_max(ts, dur) AS start_time,
        max(dur) AS duration
    FROM trace_event
    WHERE
        ph = 'X' AND cat IN ('user_annotation', 'cpu_op') AND ts IS NOT NULL AND dur IS NOT NULL
        AND regexp_matches(name, '^ProfilerStep#\d{1,18}')
    GROUP BY run_id, source, step
),

optimizer AS (
    SELECT
        run_id, source,
        ts + dur AS end_time,
        lag(ts + dur) OVER (PARTITION BY run_id, source ORDER BY ts) AS start_time,
        row_number() OVER (PARTITION BY run_id, source ORDER BY ts) - 1 AS step
    FROM trace_event
    WHERE
        ph = 'X' AND cat IN ('user_annotation', 'cpu_op') AND name LIKE 'Optimizer.step#%'
        AND ts IS NOT NULL AND dur IS NOT NULL
        AND NOT EXISTS (
            SELECT 1 FROM profiler
            WHERE profiler.run_id = trace_event.run_id AND profiler.source = trace_event.source
        )
),

stated AS (
    SELECT run_id, source, step, start_time, start_time + duration AS end_time, 'ProfilerStep' AS origin
    FROM profiler
    UNION ALL
    SELECT run_id, source, step, start_time, end_time, 'optimizer step' AS origin
    FROM optimizer
    WHERE start_time IS NOT NULL
),

complete AS (
    SELECT run_id, source, step, start_time, end_time, origin FROM stated
    UNION ALL
    SELECT run_id, source, 0 AS step, "start" AS start_time, "end" AS end_time, 'whole trace' AS origin
    FROM trace_file
    WHERE
        "start" IS NOT NULL
        AND NOT EXISTS (
            SELECT 1 FROM stated
            WHERE stated.run_id = trace_file.run_id AND stated.source = trace_file.source
        )
)

SELECT
    c.run_id, c.source, t.rank, c.step, c.start_time, c.end_time, c.end_time - c.start_time AS duration, c.origin
FROM complete AS c
INNER JOIN trace_file AS t ON t.run_id = c.run_id AND t.source = c.source
ORDER BY c.run_id, t.rank, c.source, c.start_time
