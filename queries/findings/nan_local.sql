/*---
title    = "A rank found values of its own that are not finite"
doc      = "Checked before any reduction between data-parallel ranks, and most ranks found none."
fault    = "nan_inf"
severity = "evidence"
reads    = ["nan_report"]
summary  = "rank {ranks} found it in values of its own"
[returns]
rank = "INTEGER"
step = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "one of two reports"
given.nan_report = """
rank | alone | step | line
3    | true  | 41   | 9
0    | false | 42   | 19
"""
expect = """
rank | step | line
3    | 41   | 9
"""
[[case]]
name = "nobody"
expect = "rank"
---*/
SELECT rank, step, source, line
FROM nan_report
WHERE alone
ORDER BY rank
