/*---
title    = "The profiler lost GPU records"
doc      = "Kineto says in its own log, which older traces carry, how many GPU records fell outside the window or were dropped, and whether CUPTI stopped early. What a trace does not hold cannot be judged by it."
severity = "note"
reads    = ["trace"]
summary  = "{n} traces lack GPU records: {text}"
[params]
least = { type = "BIGINT", default = 1, doc = "Records out of range from which it is said." }
[returns]
rank = "INTEGER"
source = "VARCHAR"
out_of_range = "BIGINT"
stopped_early = "BOOLEAN"
text = "VARCHAR"
[[case]]
name = "records out of range"
given.trace = """
source | rank | metadata
a      | 0    | {"INFO": ["Record counts: Out-of-range = 4181, Blocklisted runtime = 5, CUPTI stopped early? = 0"]}
"""
expect = """
rank | out_of_range | stopped_early
0    | 4181         | false
"""
[[case]]
name = "none"
given.trace = """
source | rank | metadata
a      | 0    | {"INFO": ["Record counts: Out-of-range = 0, CUPTI stopped early? = 0"]}
b      | 1    | {}
"""
expect = "rank | out_of_range"
---*/
WITH counted AS (
    SELECT
        run_id, rank, source,
        TRY_CAST(regexp_extract(metadata, 'Out-of-range = (\d{1,18})', 1) AS BIGINT) AS out_of_range,
        regexp_matches(metadata, 'CUPTI stopped early\? = 1') AS stopped_early
    FROM trace
)

SELECT
    rank, source, coalesce(out_of_range, 0) AS out_of_range, stopped_early,
    printf(
        '%s: %d GPU records out of range%s',
        source, coalesce(out_of_range, 0), CASE WHEN stopped_early THEN ', CUPTI stopped early' ELSE '' END
    ) AS text
FROM counted
WHERE out_of_range >= $least OR stopped_early
ORDER BY rank, source
