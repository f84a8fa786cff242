/*---
title = "Time of each phase of a step, by rank"
doc   = """
Seconds per run, rank, step and phase, of phases that do not contain each other: data, fwd (without the loading of data in
it), bwd_inner and bwd_allreduce (or bwd, where its parts were not measured; or fwd_bwd, where neither was), pipe (sending
and receiving between stages), gather and step. From timers, and from times that scripts print among their metrics
(data_time and its like; values that exceed two step times in nine of ten steps are in ms). Where the axis is samples (DeepSpeed's monitors, which
write one value per step), the smallest distance of two values is one step.
"""
reads = ["phase_time", "metrics"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
step = "BIGINT"
phase = "VARCHAR"
seconds = "DOUBLE"
[[case]]
name = "the parts of the backward pass stand for the whole, data is taken out of forward"
given.phase_time = """
rank | after_step | phase         | duration
0    | 1          | fwd           | 3000000000
0    | 1          | fwd_data      | 2000000000
0    | 1          | bwd           | 5000000000
0    | 1          | bwd_inner     | 2500000000
0    | 1          | bwd_allreduce | 2000000000
0    | 1          | fwd_microstep | 9000000000
1    | 1          | bwd           | 4000000000
"""
expect = """
rank | step | phase         | seconds
0    | 1    | bwd_allreduce | 2
0    | 1    | bwd_inner     | 3
0    | 1    | data          | 2
0    | 1    | fwd           | 1
1    | 1    | bwd           | 4
"""
[[case]]
name = "a pipeline prints timers of micro steps only; Megatron forward and backward in one"
given.phase_time = """
rank | step | phase                  | duration
0    | 1    | fwd_microstep          | 1000000000
0    | 1    | bwd_insidemicrostep    | 1500000000
0    | 1    | bwd_allreduce_microstep | 500000000
0    | 1    | pipe_recv_grad         | 500000000
0    | 1    | pipe_send_output       | 250000000
1    | 1    | forward_backward       | 2000000000
1    | 1    | bwd_allreduce          | 1000000000
"""
expect = """
rank | step | phase         | seconds
0    | 1    | bwd_allreduce | 0.5
0    | 1    | bwd_inner     | 1.5
0    | 1    | fwd           | 1
0    | 1    | pipe          | 0.75
1    | 1    | bwd_allreduce | 1
1    | 1    | fwd_bwd       | 2
"""
[[case]]
name = "an axis of samples, 32 per step"
given.phase_time = """
rank | samples | source | phase | duration
0    | 32      | a      | step  | 1000000000
0    | 64      | a      | step  | 2000000000
0    | 128     | a      | step  | 3000000000
"""
expect = """
rank | step | phase | seconds
0    | 1    | step  | 1
0    | 2    | step  | 2
0    | 4    | step  | 3
"""
[[case]]
name = "times among metrics, one of them in ms"
given.metrics = """
rank | step | name      | value
2    | 7    | step_time | 1
2    | 7    | data_time | 0.5
2    | 7    | fwd_time  | 250
"""
expect = """
rank | step | phase | seconds
2    | 7    | data  | 0.5
2    | 7    | fwd   | 0.25
"""
---*/
WITH printed AS (
    SELECT
        run_id, rank, step,
        max(value) FILTER (WHERE name IN ('data_time', 'dataloader_time', 'data_loading_time', 'data_load_time', 'load_time', 'data_wait', 'data_wait_time')) AS data,
        max(value) FILTER (WHERE name IN ('fwd_time', 'forward_time')) AS fwd,
        max(value) FILTER (WHERE name IN ('bwd_time', 'backward_time')) AS bwd,
        max(value) FILTER (WHERE name IN ('comm_time', 'allreduce_time', 'all_reduce_time')) AS comm,
        max(value) FILTER (WHERE name IN ('opt_time', 'optimizer_time', 'optim_time')) AS optim
    FROM metrics
    WHERE
        step IS NOT NULL AND isfinite(value) AND value >= 0
        AND name IN (
            'data_time', 'dataloader_time', 'data_loading_time', 'data_load_time', 'load_time', 'data_wait', 'data_wait_time',
            'fwd_time', 'forward_time', 'bwd_time', 'backward_time', 'comm_time', 'allreduce_time', 'all_reduce_time',
            'opt_time', 'optimizer_time', 'optim_time'
        )
    GROUP BY run_id, rank, step
),

named AS (
    SELECT run_id, rank, step, phase, seconds
    FROM (
        SELECT run_id, rank, step, data, fwd, bwd, comm AS bwd_allreduce, optim FROM printed
    ) UNPIVOT (seconds FOR phase IN (data, fwd, bwd, bwd_allreduce, optim))
),

sampled AS (
    SELECT run_id, rank, step, phase, seconds
    FROM named
    QUALIFY row_number() OVER (PARTITION BY run_id, phase ORDER BY step, rank) <= 1000
),

-- A part that is longer than its step is in milliseconds. Step times are looked up for a few only: a large run has many.
scales AS (
    SELECT n.run_id, n.phase, if(quantile_cont(n.seconds / m.value, 0.1) > 2, 0.001, 1) AS scale
    FROM sampled AS n
    INNER JOIN metrics AS m ON n.run_id = m.run_id AND n.step = m.step AND n.rank IS NOT DISTINCT FROM m.rank
    WHERE m.name = 'step_time' AND isfinite(m.value) AND m.value > 0
    GROUP BY n.run_id, n.phase
),

batches AS (
    SELECT run_id, min(gap) AS samples
    FROM (
        SELECT run_id, samples - lag(samples) OVER (PARTITION BY run_id, source, phase ORDER BY samples) AS gap
        FROM phase_time
        WHERE samples IS NOT NULL
    )
    WHERE gap > 0
    GROUP BY run_id
),

timed AS (
    SELECT
        p.run_id, p.rank,
        coalesce(p.step, p.after_step, p.samples // b.samples) AS step,
        p.phase,
        max(p.duration) / 1e9 AS seconds
    FROM phase_time AS p
    LEFT JOIN batches AS b ON p.run_id = b.run_id
    WHERE coalesce(p.step, p.after_step, p.samples // b.samples) IS NOT NULL
    GROUP BY ALL
    UNION ALL
    SELECT
        n.run_id, n.rank, n.step,
        if(n.phase = 'optim', 'step', n.phase) AS phase,
        n.seconds * coalesce(s.scale, 1) AS seconds
    FROM named AS n
    LEFT JOIN scales AS s ON n.run_id = s.run_id AND n.phase = s.phase
),

wide AS (
    SELECT
        run_id, rank, step,
        max(seconds) FILTER (WHERE phase = 'data') AS data,
        max(seconds) FILTER (WHERE phase = 'fwd_data') AS fwd_data,
        coalesce(max(seconds) FILTER (WHERE phase = 'fwd'), max(seconds) FILTER (WHERE phase = 'fwd_microstep')) AS fwd,
        coalesce(max(seconds) FILTER (WHERE phase = 'bwd'), max(seconds) FILTER (WHERE phase = 'bwd_microstep')) AS bwd,
        coalesce(max(seconds) FILTER (WHERE phase = 'bwd_inner'), max(seconds) FILTER (WHERE phase = 'bwd_insidemicrostep')) AS inside,
        coalesce(
            max(seconds) FILTER (WHERE phase = 'bwd_allreduce'), max(seconds) FILTER (WHERE phase = 'bwd_allreduce_microstep')
        ) AS reduce,
        max(seconds) FILTER (WHERE phase = 'forward_backward') AS passes,
        sum(seconds) FILTER (WHERE regexp_matches(phase, '^(pipe|forward|backward)_.*(send|recv)')) AS pipe,
        max(seconds) FILTER (WHERE phase = 'params_all_gather') AS gather,
        coalesce(max(seconds) FILTER (WHERE phase = 'step'), max(seconds) FILTER (WHERE phase = 'step_microstep')) AS optim
    FROM timed
    GROUP BY run_id, rank, step
),

parted AS (
    SELECT
        run_id, rank, step,
        coalesce(data, fwd_data) AS data,
        CASE WHEN fwd IS NOT NULL THEN greatest(fwd - coalesce(fwd_data, 0), 0) END AS fwd,
        CASE WHEN reduce IS NOT NULL THEN greatest(inside, bwd - reduce) END AS bwd_inner,
        CASE WHEN reduce IS NULL THEN coalesce(bwd, inside) END AS bwd,
        reduce AS bwd_allreduce,
        CASE WHEN fwd IS NULL AND bwd IS NULL AND inside IS NULL THEN passes END AS fwd_bwd,
        pipe, gather, optim
    FROM wide
)

SELECT run_id, rank, step, if(phase = 'optim', 'step', phase) AS phase, seconds
FROM parted UNPIVOT (seconds FOR phase IN (data, fwd, bwd_inner, bwd, bwd_allreduce, fwd_bwd, pipe, gather, optim))
ORDER BY run_id, rank, step, phase
