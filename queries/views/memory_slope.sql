/*---
title = "Growth of memory per rank and kind"
doc   = "Slope of the lower envelope in bytes per step with its interval, of the whole and of both halves, the word for it (growing, flat or undecided), why, and what was added in all; `final` is the last value. A warm-up, a plateau, a saw tooth or a single step is not growth."
keep  = true
reads = ["memory_series"]
[returns]
run_id = "VARCHAR"
rank = "INTEGER"
kind = "VARCHAR"
word = "VARCHAR"
slope = "DOUBLE"
low = "DOUBLE"
high = "DOUBLE"
first_half = "DOUBLE"
second_half = "DOUBLE"
rise = "DOUBLE"
why = "VARCHAR"
steps = "BIGINT"
final = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "one MiB in each of two steps, printed every other step; a second rank printed once"
given.memory_series = """
rank | kind     | step | bytes    | line
0    | host_rss | 2    | 2097152  | 1
0    | host_rss | 4    | 4194304  | 2
0    | host_rss | 6    | 6291456  | 3
0    | host_rss | 8    | 8388608  | 4
0    | host_rss | 10   | 10485760 | 5
0    | host_rss | 12   | 12582912 | 6
0    | host_rss | 14   | 14680064 | 7
0    | host_rss | 16   | 16777216 | 8
0    | host_rss | 18   | 18874368 | 9
1    | host_rss | 2    | 2097152  | 1
"""
expect = """
rank | kind     | word    | slope   | second_half | steps | final    | line
0    | host_rss | growing | 1048576 | 1048576     | 9     | 18874368 | 9
"""
[[case]]
name = "flat"
given.memory_series = """
rank | kind     | step | bytes
0    | host_rss | 1    | 100
0    | host_rss | 2    | 100
"""
expect = """
rank | kind     | steps | final
0    | host_rss | 2     | 100
"""
---*/
WITH series AS (
    SELECT
        run_id, rank, kind,
        growth(list(CAST(bytes AS DOUBLE) ORDER BY step)) AS g,
        (max(step) - min(step)) / (count(*) - 1) AS stride,
        count(*) AS steps,
        arg_max(bytes, step) AS final,
        arg_max(source, step) AS source,
        arg_max(line, step) AS line
    FROM memory_series
    GROUP BY run_id, rank, kind
    HAVING count(*) > 1
)

SELECT
    run_id, rank, kind,
    g.kind AS word, g.slope / stride AS slope, g.low / stride AS low, g.high / stride AS high,
    g.first_half_slope / stride AS first_half, g.second_half_slope / stride AS second_half,
    g.rise, g.why, steps, final, source, line
FROM series
