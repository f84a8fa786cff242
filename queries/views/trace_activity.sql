/*---
title = "What a rank was busy with, event by event"
doc = """
One row per event that explains time: GPU kernels (compute or communication), GPU copies and sets, waits for the data
loader, collectives on the CPU, calls of the device's runtime, operators on the CPU. `level` orders them: where several
run at once, the lowest one counts (a kernel before the operator that launched it). Kernel classes follow
HolisticTraceAnalysis (hta/common/types.py), plus the custom all-reduce and device-side communication kernels it counts as
compute, and ROCm's copy kernels.
"""
reads = ["trace_event", "trace_file"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
event = "BIGINT"
name = "VARCHAR"
stream = "BIGINT"
correlation = "BIGINT"
activity = "VARCHAR"
level = "INTEGER"
start_time = "BIGINT"
end_time = "BIGINT"
[[case]]
name = "one of each"
given.trace_event = """
source | rank | ordinal | ph | cat             | name                            | ts | dur | stream
a      | 0    | 0       | X  | kernel          | volta_sgemm                     | 10 | 5   | 7
a      | 0    | 1       | X  | kernel          | ncclDevKernel_AllReduce_Sum_f32 | 11 | 5   | 8
a      | 0    | 2       | X  | kernel          | __amd_rocclr_copyBuffer         | 12 | 5   | 7
a      | 0    | 3       | X  | gpu_memcpy      | Memcpy HtoD                     | 13 | 5   | 7
a      | 0    | 4       | X  | cpu_op          | enumerate(DataLoader)#_X        | 14 | 5   |
a      | 0    | 5       | X  | user_annotation | gloo:all_reduce                 | 15 | 5   |
a      | 0    | 6       | X  | cuda_runtime    | cudaLaunchKernel                | 16 | 5   |
a      | 0    | 7       | X  | cpu_op          | aten::mm                        | 17 | 5   |
a      | 0    | 8       | X  | user_annotation | ProfilerStep#1                  | 18 | 5   |
a      | 0    | 9       | X  | cpu_op          | ProfilerStep#1                  | 18 | 5   |
a      | 0    | 10      | X  | kernel          | bad                             |    | 5   | 7
a      | 0    | 11      | X  | xpu_runtime     | urEnqueueKernelLaunch           | 19 | 5   |
a      | 0    | 12      | X  | kernel          | oneccl_reduce_base<float, 2>    | 20 | 5   | 8
"""
expect = """
event | activity      | level | start_time | end_time
0     | gpu compute   | 1     | 10         | 15
1     | communication | 2     | 11         | 16
2     | gpu copy      | 3     | 12         | 17
3     | gpu copy      | 3     | 13         | 18
4     | data loader   | 4     | 14         | 19
5     | communication | 5     | 15         | 20
6     | runtime call  | 6     | 16         | 21
7     | cpu operator  | 7     | 17         | 22
11    | runtime call  | 6     | 19         | 24
12    | communication | 2     | 20         | 25
"""
---*/
WITH classified AS (
    SELECT
        run_id, source, ordinal, name, stream, correlation, ts, dur,
        CASE
            WHEN cat = 'kernel' AND regexp_matches(name, '^((hip)?Mem(cpy|set)|__amd_rocclr_(copy|fill)|dma)') THEN 3
            WHEN
                cat = 'kernel'
                AND regexp_matches(
                    name,
                    '^(nccl|rccl|hccl|oneccl)|ncclKernel|ncclDevKernel|cross_device_reduce|multimem_all|'
                    || '(one|two)_shot_all_?reduce|nvshmem|deep_ep'
                )
                THEN 2
            WHEN cat = 'kernel' THEN 1
            WHEN cat IN ('gpu_memcpy', 'gpu_memset') THEN 3
            WHEN
                cat IN ('user_annotation', 'cpu_op')
                AND regexp_matches(
                    lower(name),
                    'data_?load|data load|get_batch|next_batch|load_batch|batch_generator|fetch_next|data_fetch'
                )
                THEN 4
            WHEN cat IN ('user_annotation', 'cpu_op') AND regexp_matches(name, '^(gloo|mpi|ucc):') THEN 5
            WHEN regexp_matches(cat, '_(runtime|driver)$') THEN 6
            WHEN
                cat = 'cpu_op'
                AND NOT regexp_matches(name, '^(ProfilerStep#|Optimizer\.(step|zero_grad)#)')
                THEN 7
        END AS level
    FROM trace_event
    WHERE ph = 'X' AND ts IS NOT NULL AND dur IS NOT NULL
)

SELECT
    c.run_id, c.source, t.rank, c.ordinal AS event, c.name, c.stream, c.correlation,
    CASE c.level
        WHEN 1 THEN 'gpu compute' WHEN 2 THEN 'communication' WHEN 3 THEN 'gpu copy' WHEN 4 THEN 'data loader'
        WHEN 5 THEN 'communication' WHEN 6 THEN 'runtime call' ELSE 'cpu operator'
    END AS activity,
    c.level,
    c.ts AS start_time,
    c.ts + c.dur AS end_time
FROM classified AS c
LEFT JOIN trace_file AS t ON t.run_id = c.run_id AND t.source = c.source
WHERE c.level IS NOT NULL
