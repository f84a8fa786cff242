/*---
title    = "The ranks of one host neither timed out nor ended, while every other host did"
doc      = "Ranks that wait in a collective run out of time alike; those of one host wrote nothing more, and its launcher nothing of their end: the host, or all that ran on it, was gone or stuck. Lost logs look the same."
fault    = "comm_hang"
severity = "evidence"
reads    = ["host_silence"]
summary  = "host {host} wrote nothing more with its {ranks} ranks, while the others ran out of time"
[returns]
host = "VARCHAR"
ranks = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "the others timed out"
given.host_silence = """
host | ranks | last_step | lost  | timed_out | line
b    | 2     | 30        | false | true      | 51
"""
expect = """
host | ranks | line
b    | 2     | 51
"""
[[case]]
name = "nobody timed out"
given.host_silence = """
host | ranks | last_step | lost | timed_out | line
b    | 2     | 30        | true | false     | 51
"""
expect = "host"
---*/
SELECT host, ranks, time, source, line
FROM host_silence
WHERE timed_out
ORDER BY host
