/*---
title = "Collectives of each rank, as the trace shows them"
doc = """
One row per rank and collective operation: kernels of NCCL, RCCL, HCCL and oneCCL, and the gloo, MPI and UCC annotations
on the CPU. The step is that of the launch where the launch is known, because kernels run on after the step that launched
them. `ordinal` counts the operations of one kind within the step (and process group, where every operation states one).
`group_size` is the number of ranks of the group, where the operation states it. A kernel that sends and receives may be
an exchange between all ranks or between two neighbours: only the stated name of the collective can tell.
"""
reads = ["trace_file", "trace_event", "trace_step", "trace_launch"]
materialize = true
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
rank = "INTEGER"
host = "VARCHAR"
event = "BIGINT"
step = "BIGINT"
backend = "VARCHAR"
kind = "VARCHAR"
group_name = "VARCHAR"
group_size = "BIGINT"
sequence = "BIGINT"
stream = "BIGINT"
method = "VARCHAR"
span = "BIGINT"
match_group = "VARCHAR"
ordinal = "BIGINT"
launch_time = "BIGINT"
start_time = "BIGINT"
end_time = "BIGINT"
[[case]]
name = "a kernel belongs to the step of its launch; gloo runs on the CPU"
given.trace_file = """
source | rank | host | start
a      | 0    | h    | 0
"""
given.trace_step = """
source | rank | step | start_time | end_time | origin
a      | 0    | 1    | 100        | 200      | ProfilerStep
a      | 0    | 2    | 200        | 300      | ProfilerStep
"""
given.trace_event = """
source | rank | ph | cat             | name                                        | ts  | dur | correlation | stream | collective  | args
a      | 0    | X  | kernel          | ncclKernel_AllReduce_RING_LL_Sum_float(x)   | 210 | 50  | 9           | 7      |             |
a      | 0    | X  | kernel          | ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)  | 270 | 5   | 10          | 7      |             |
a      | 0    | X  | user_annotation | gloo:all_gather                             | 220 | 20  |             |        |             |
a      | 0    | X  | kernel          | volta_sgemm                                 | 210 | 50  | 11          | 7      |             |
a      | 0    | X  | kernel          | ncclDevKernel_SendRecv(x)                   | 280 | 5   | 12          | 7      | all_to_allv | {"Group size": 4}
a      | 0    | X  | kernel          | ncclDevKernel_SendRecv(x)                   | 290 | 5   | 13          | 7      |             |
"""
given.trace_launch = """
source | correlation | launch_time
a      | 9           | 150
"""
expect = """
rank | step | kind      | ordinal | launch_time | start_time | end_time | backend | group_size
0    | 1    | allreduce | 1       | 150         | 210        | 260      | nccl    |
0    | 2    | allgather | 1       | 220         | 220        | 240      | gloo    |
0    | 2    | allreduce | 1       | 270         | 270        | 275      | nccl    |
0    | 2    | alltoallv | 1       | 280         | 280        | 285      | nccl    | 4
0    | 2    | sendrecv  | 1       | 290         | 290        | 295      | nccl    |
"""
---*/
WITH operation AS (
    SELECT
        e.run_id, e.source, e.ordinal AS event, e."group" AS group_name, e.sequence, e.stream,
        e.ts AS start_time, e.ts + e.dur AS end_time,
        CASE
            WHEN e.collective IS NOT NULL AND json_valid(e.args)
                THEN TRY_CAST(json_extract_string(e.args, '$."Group size"') AS BIGINT)
        END AS group_size,
        coalesce(l.launch_time, e.ts) AS launch_time,
        CASE
            WHEN e.cat = 'kernel' AND e.name ILIKE '%rccl%' THEN 'rccl'
            WHEN e.cat = 'kernel' AND e.name ILIKE '%hccl%' THEN 'hccl'
            WHEN e.cat = 'kernel' AND e.name ILIKE 'oneccl%' THEN 'oneccl'
            WHEN e.cat = 'kernel' THEN 'nccl'
            ELSE split_part(e.name, ':', 1)
        END AS backend,
        CASE
            WHEN e.cat != 'kernel' THEN replace(lower(split_part(e.name, ':', 2)), '_', '')
            ELSE coalesce(
                nullif(replace(lower(regexp_extract(
                    e.name,
                    'all_?reduce|all_?gather|reduce_?scatter|broadcast|reduce|all_?to_?all', 0, 'i'
                )), '_', ''), ''),
                nullif(replace(lower(e.collective), '_', ''), ''),
                CASE WHEN regexp_matches(e.name, 'send_?recv', 'i') THEN 'sendrecv' END,
                'unknown'
            )
        END AS kind
    FROM trace_event AS e
    LEFT JOIN trace_launch AS l
        ON e.cat = 'kernel' AND l.run_id = e.run_id AND l.source = e.source AND l.correlation = e.correlation
    WHERE
        e.ph = 'X' AND e.ts IS NOT NULL AND e.dur IS NOT NULL
        AND (
            (e.cat = 'kernel' AND regexp_matches(e.name, '^(nccl|rccl|hccl|oneccl)|ncclKernel|ncclDevKernel'))
            OR (e.cat IN ('user_annotation', 'cpu_op') AND regexp_matches(e.name, '^(gloo|mpi|ucc):'))
        )
),

spanned AS (
    SELECT
        run_id, source, rank, host,
        dense_rank() OVER (PARTITION BY run_id, rank ORDER BY "start", source) AS span
    FROM trace_file
),

placed AS (
    SELECT
        o.run_id, o.source, t.rank, o.event, o.group_name, o.group_size, o.sequence, o.stream, o.start_time, o.end_time,
        o.launch_time, o.backend, o.kind, s.step, s.origin, t.host, t.span,
        bool_and(o.group_name IS NOT NULL) OVER (PARTITION BY o.run_id, o.backend) AS grouped,
        bool_and(o.group_name IS NOT NULL AND o.sequence IS NOT NULL)
            OVER (PARTITION BY o.run_id, o.backend) AS sequenced
    FROM operation AS o
    ASOF LEFT JOIN trace_step AS s
        ON s.run_id = o.run_id AND s.source = o.source AND s.start_time <= o.launch_time
    INNER JOIN spanned AS t ON t.run_id = o.run_id AND t.source = o.source
)

SELECT
    run_id, source, rank, host, event, step, backend, kind, group_name, group_size, sequence, stream,
    CASE WHEN sequenced THEN 'sequence' WHEN origin = 'ProfilerStep' THEN 'step and order' ELSE 'order' END AS method,
    CASE WHEN origin = 'ProfilerStep' THEN 0 ELSE span END AS span,
    CASE WHEN grouped THEN group_name END AS match_group,
    CASE
        WHEN sequenced THEN sequence
        ELSE row_number() OVER (
            PARTITION BY run_id, source, step, CASE WHEN grouped THEN group_name END, backend, kind
            ORDER BY launch_time, start_time, event
        )
    END AS ordinal,
    launch_time, start_time, end_time
FROM placed
ORDER BY run_id, rank, source, launch_time, event
