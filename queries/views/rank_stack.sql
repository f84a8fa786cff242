/*---
title = "What each rank was doing when its stack was printed"
doc   = """
From the newest dump of live threads (faulthandler, py-spy) of each rank: the thread that runs the program, its
innermost frame of the user's own code, and whether any thread stands in a collective."""
reads = ["events"]
materialize = true
[returns]
rank = "INTEGER"
place = "VARCHAR"
waits = "BOOLEAN"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "one waits in all_reduce, one is in its own code"
given.events = """
kind  | rank | source | line | detail
stack | 0    | a      | 3    | {"current": true, "frames": ["watch (/w/train.py:110)", "_bootstrap (/usr/lib/python3.11/threading.py:1002)"]}
stack | 0    | a      | 9    | {"current": false, "frames": ["all_reduce (/v/site-packages/torch/distributed/distributed_c10d.py:3252)", "<module> (/w/train.py:160)"]}
stack | 1    | b      | 9    | {"current": false, "frames": ["<module> (/w/train.py:144)"]}
"""
expect = """
rank | place                     | waits | line
0    | <module> (/w/train.py:160) | true  | 9
1    | <module> (/w/train.py:144) | false | 9
"""
---*/
WITH thread AS (
    SELECT
        rank,
        source,
        line,
        CAST(json_extract(detail, '$.frames') AS VARCHAR[]) AS frames
    FROM events
    WHERE kind = 'stack' AND rank IS NOT NULL
),

judged AS (
    SELECT
        rank,
        source,
        line,
        list_filter(
            frames, LAMBDA f: NOT regexp_matches(f, '(site|dist)-packages|/lib/python3|\(<')
        )[1] AS place,
        len(list_filter(frames, LAMBDA f: regexp_matches(f, '<module>'))) > 0 AS main,
        len(
            list_filter(
                frames,
                LAMBDA f: regexp_matches(f, 'torch/distributed/(distributed_c10d|c10d_logger|_functional_collectives)|deepspeed/comm/')
            )
        ) > 0 AS waits
    FROM thread
)

SELECT
    rank,
    arg_max(place, (main, line)) AS place,
    bool_or(waits) AS waits,
    arg_max(source, (main, line)) AS source,
    arg_max(line, (main, line)) AS line
FROM judged
GROUP BY rank
ORDER BY rank
