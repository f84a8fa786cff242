/*---
title    = "One host fell silent, and the others lost their connection to it"
doc      = "The launcher and the ranks of one host wrote of their start or their steps, and then neither of an error, nor an end, nor a lost peer, while every other host did: the host is gone, or what it wrote last is. Where ranks ran out of time, nothing is said of a crash: a rank that hangs is as silent. It names no rank: those of the host did not fail by themselves."
fault    = "crash"
severity = "fault"
weight   = 1
confidence = "medium"
reads    = ["host_silence"]
summary  = "host {host} fell silent with its {ranks} ranks{last}, and the others lost their connection to it"
[returns]
rank = "INTEGER"
host = "VARCHAR"
ranks = "BIGINT"
last = "VARCHAR"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "connections were closed"
given.host_silence = """
host | ranks | last_step | lost | timed_out | line
b    | 2     | 30        | true | false     | 51
"""
expect = """
rank | host | ranks | step | line
     | b    | 2     | 31   | 51
"""
[[case]]
name = "ranks ran out of time"
given.host_silence = """
host | ranks | last_step | lost | timed_out | line
b    | 2     | 30        | true | true      | 51
"""
expect = "rank | host"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    host, ranks,
    coalesce(' after step ' || last_step, '') AS last,
    last_step + 1 AS step,
    time, source, line,
    'the last record of host ' || host || ', without an error, an end or a complaint; every other host wrote of one' AS text
FROM host_silence
WHERE lost AND NOT timed_out
ORDER BY host
