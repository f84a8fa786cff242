/*---
title    = "A worker of the data loader died"
doc      = "A process that loads data was killed or ended: host or shared memory ran out, or the data set's own code failed."
fault    = "crash"
severity = "evidence"
reads    = ["events"]
summary  = "{n} loader processes ended, the first: {text}"
[returns]
rank = "INTEGER"
host = "VARCHAR"
step = "BIGINT"
name = "VARCHAR"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "reported once"
given.events = """
kind | role | name | rank | line | message
data_worker | symptom | SIGKILL | 1 | 5 | words
"""
expect = """
rank | line | text
1    | 5    | words
"""
[[case]]
name = "something else"
given.events = """
kind | role | name | rank
kill | cascade | SIGTERM | 1
"""
expect = "rank"
---*/
SELECT rank, host, coalesce(step, after_step) AS step, name, time, source, line, message AS text
FROM events
WHERE kind = 'data_worker'
ORDER BY time NULLS LAST, source, line
