/*---
title = "What hosts and ranks state of their software and devices, in one wording"
doc   = "One row per run, place (host, also one of the run that the path of the file names; else rank, else file) and name: its values as one text. Addresses, paths, sizes and what was not found are left out; a version printed with and without its build (2.4.0, 2.4.0+cu124) is one value unless several builds of it are stated. Of versions that one place states several of, those stated less than half as often as the most frequent one are left out: ranks write into each other's lines. Environment variables are named by themselves."
reads = ["environment", "config", "process"]
[returns]
run_id = "VARCHAR"
place = "VARCHAR"
placed = "BOOLEAN"
name = "VARCHAR"
value = "VARCHAR"
several = "BOOLEAN"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "lines of ranks that were glued together; devices may differ in one host"
given.environment = """
host | name            | value                                | source | line
a    | torch           | 2.4.0                                | x      | 1
a    | torch           | 2.4.0                                | x      | 2
a    | torch           | 2.4.0                                | x      | 3
a    | torch           | 2.4.0torch                           | x      | 4
a    | gpu             | A                                    | x      | 5
a    | gpu             | A                                    | x      | 6
a    | gpu             | A                                    | x      | 7
a    | gpu             | B                                    | x      | 8
b    | deepspeed_wheel | async_iotorch 2.9, cuda 12.8, torch 2.9 | x   | 9
b    | cuda            | 12.8 nvcc version ..... 12.8         | x      | 10
"""
expect = """
place | name  | value | several
a     | gpu   | A, B  | true
a     | torch | 2.4.0 | false
"""
[[case]]
name = "folders and files that are named like hosts of the run"
given.process = """
host
gpu-a1
gpu-a17
"""
given.environment = """
name   | value | source            | line
driver | 550   | gpu-a17/env.txt   | 1
driver | 535   | env_gpu-a1.txt    | 1
driver | 525   | gpu-a18/env.txt   | 1
driver | 520   | gpu-a1_gpu-a17.txt | 1
"""
expect = """
place              | placed | name   | value
gpu-a1             | true   | driver | 535
gpu-a17            | true   | driver | 550
gpu-a18/env.txt    | false  | driver | 525
gpu-a1_gpu-a17.txt | false  | driver | 520
"""
[[case]]
name = "one version in two wordings, two builds of another, addresses and paths"
given.environment = """
host | rank | name               | value                                   | source | line
a    |      | torch              | 2.4.0+cu124                             | x      | 1
b    |      | torch              | v2.4.0                                  | x      | 2
b    |      | deepspeed          | unknown                                 | x      | 3
a    |      | nccl               | 2.20.5+cuda12.4                         | x      | 4
b    |      | nccl               | (2, 20, 5)                              | x      | 5
     | 3    | nccl               | 2.20.5+cuda12.1                         | x      | 6
a    |      | nccl_ib            | [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0> | x     | 7
a    |      | nccl_bootstrap     | ib0:10.0.0.1<0>                         | x      | 8
a    |      | torch install path | ['/opt/torch']                          | x      | 9
a    |      | gpu                | B                                       | x      | 11
a    |      | gpu                | A                                       | x      | 10
     |      | driver             | 535                                     | x      | 12
"""
given.config = """
kind        | key                  | value   | host | source | line
environment | NCCL_IB_DISABLE      | "1"     | a    | x      | 20
environment | NCCL_SOCKET_IFNAME   | "eth0"  | a    | x      | 21
trainer     | lr                   | "0.1"   | a    | x      | 22
"""
expect = """
place  | placed | name            | value               | several
a      | true   | NCCL_IB_DISABLE | 1                   | false
a      | true   | gpu             | A, B                | true
a      | true   | nccl            | 2.20.5+cuda12.4     | false
a      | true   | nccl_ib         | [0]mlx5_0:1/IB [RO] | false
a      | true   | torch           | 2.4.0+cu124         | false
b      | true   | torch           | 2.4.0+cu124         | false
rank 3 | true   | nccl            | 2.20.5+cuda12.1     | false
x      | false  | driver          | 535                 | false
"""
---*/
WITH worded AS (
    SELECT
        run_id, source, line, host, rank, name,
        -- (2, 20, 5) is how torch.cuda.nccl.version() prints; a network's own address differs by design.
        CASE
            WHEN regexp_full_match(value, '\(\d+(, \d+)+\)') THEN replace(value[2:-2], ', ', '.')
            ELSE regexp_replace(regexp_replace(trim(value), '; OOB .*$', ''), '^(?:[vV](\d)|NVIDIA )', '\1')
        END AS value
    FROM environment
    WHERE name NOT IN ('nccl_bootstrap', 'nccl_socket') AND NOT regexp_matches(name, '(?i)(^|[ _])(path|size)$')
    UNION ALL
    SELECT run_id, source, line, host, rank, key, trim(json_extract_string(value, '$'))
    FROM config
    WHERE
        kind = 'environment'
        AND NOT regexp_matches(
            key, '(?i)(^|_)(rank|host|hostname|node|nodeid|nodename|port|addr|file|dir|path|proc|procid|ifname|id|devices)$'
        )
),

hosts AS (
    SELECT DISTINCT run_id, host FROM process WHERE host IS NOT NULL
),

homes AS (
    SELECT w.run_id, w.source, min(h.host) AS host
    FROM (SELECT DISTINCT run_id, source FROM worded WHERE host IS NULL AND rank IS NULL) AS w
    INNER JOIN hosts AS h
        ON w.run_id = h.run_id AND regexp_matches(w.source, '(^|[^A-Za-z0-9])' || regexp_escape(h.host) || '([^A-Za-z0-9]|$)')
    GROUP BY w.run_id, w.source
    HAVING count(*) = 1
),

known AS (
    SELECT
        w.run_id, w.source, w.line, w.name, w.value,
        coalesce(w.host, 'rank ' || w.rank, m.host, w.source) AS place,
        w.host IS NOT NULL OR w.rank IS NOT NULL OR m.host IS NOT NULL AS placed,
        split_part(w.value, '+', 1) AS base
    FROM worded AS w
    LEFT JOIN homes AS m ON w.run_id = m.run_id AND w.source = m.source
    WHERE
        NOT regexp_full_match(w.value, '(?i)(|none|n/?a|unknown|null|\[.*not.*\]|could not collect)')
        AND NOT contains(w.value, '...')
        AND (w.name <> 'deepspeed_wheel' OR regexp_full_match(w.value, 'torch [\d.]+, (cuda|hip|cann) \S+'))
),

builds AS (
    SELECT
        name, base,
        count(DISTINCT value) FILTER (WHERE value <> base) AS n,
        max(value) FILTER (WHERE value <> base) AS built
    FROM known
    GROUP BY name, base
),

plain AS (  -- where several builds are stated, a bare version may be any of them
    SELECT k.run_id, k.place, k.placed, k.name, k.source, k.line, CASE WHEN b.n > 1 THEN k.value ELSE coalesce(b.built, k.base) END AS value
    FROM known AS k
    INNER JOIN builds AS b ON k.name = b.name AND k.base = b.base
    WHERE b.n <= 1 OR k.value <> k.base
),

often AS (
    SELECT
        run_id, place, placed, name, value,
        count(*) AS times,
        min(source) AS source,
        min(line) AS line
    FROM plain
    GROUP BY run_id, place, placed, name, value
),

believed AS (
    SELECT run_id, place, placed, name, value, source, line
    FROM often
    QUALIFY 2 * times >= max(times) OVER (PARTITION BY run_id, place, name) OR name IN ('gpu', 'firmware', 'nic', 'nic_firmware', 'nic_board')
)

SELECT
    run_id, place, placed, name,
    array_to_string(list_sort(list_distinct(list(value))), ', ') AS value,
    count(DISTINCT value) > 1 AS several,
    min(source) AS source,
    min(line) AS line
FROM believed
GROUP BY run_id, place, placed, name
ORDER BY run_id, place, name
