/*---
title = "Year of a run"
doc   = "The year that most stamped happenings of the run lie in: it dates the stamps that lack one. NULL where none states it."
reads = ["event", "line", "trace"]
[returns]
run_id = "VARCHAR"
year = "BIGINT"
[[case]]
name = "stamps without a year do not count"
given.event = """
time                | clock
1767225600000000000 | local
63072000000000000   | day
"""
expect = """
year
2026
"""
---*/
SELECT run_id, mode(year) AS year
FROM (
    SELECT run_id, year(make_timestamp(time // 1000)) AS year FROM event WHERE clock IN ('utc', 'local', 'year')
    UNION ALL
    SELECT run_id, year(make_timestamp(max(time) // 1000)) FROM line WHERE clock IN ('utc', 'local') GROUP BY run_id, source
    UNION ALL
    SELECT run_id, year(make_timestamp(start // 1000)) FROM trace WHERE start IS NOT NULL
)
GROUP BY run_id
