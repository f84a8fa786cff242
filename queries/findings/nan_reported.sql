/*---
title    = "The training code gave up for a value that is not finite"
doc      = "A process said so itself: Megatron-Core's checks before the reduction, autograd's anomaly detection, or a loop that stops. A rank is named only where it spoke of values of its own, most others did not, and no other rank can have passed them on."
fault    = "nan_inf"
severity = "fault"
weight   = 1
reads    = ["nan_report"]
summary  = "training gave up for a value that is not finite, begun by {who}: {text}"
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
confidence = "VARCHAR"
[[case]]
name = "one rank alone, one that heard of it"
given.nan_report = """
rank | alone | step | line | text
3    | true  | 41   | 9    | found NaN
0    | false | 42   | 19   | Loss is nan
"""
expect = """
rank | culprit | step | line | confidence
3    | true    | 41   | 9    | high
0    | false   | 42   | 19   | medium
"""
[[case]]
name = "nobody"
expect = "rank"
---*/
SELECT
    rank, alone AS culprit, step, time, source, line, text,
    CASE WHEN alone THEN 'high' ELSE 'medium' END AS confidence
FROM nan_report
ORDER BY alone DESC, time NULLS LAST, source, line
