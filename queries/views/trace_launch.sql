/*---
title = "When each piece of device work was launched"
doc = """
One row per trace and correlation id: begin and end of the first call of a runtime or driver that carries it. Calls have
the category of their device: cuda, xpu, mtia, privateuse1 and whatever follows, with _runtime or _driver
(libkineto/include/ActivityType.h).
"""
reads = ["trace_event"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
correlation = "BIGINT"
launch_time = "BIGINT"
launched = "BIGINT"
[[case]]
name = "calls of every device's runtime; neither its synchronisation nor what has no id"
given.trace_event = """
source | ph | cat                 | ts  | dur | correlation
a      | X  | cuda_runtime        | 80  | 10  | 1
a      | X  | cuda_driver         | 85  | 2   | 1
a      | X  | xpu_runtime         | 100 | 5   | 2
a      | X  | privateuse1_runtime | 200 | 6   | 3
a      | X  | xpu_sync            | 300 | 7   | 4
a      | X  | kernel              | 310 | 7   | 1
a      | X  | cuda_runtime        | 400 | 8   | 0
"""
expect = """
source | correlation | launch_time | launched
a      | 1           | 80          | 87
a      | 2           | 100         | 105
a      | 3           | 200         | 206
"""
---*/
SELECT run_id, source, correlation, min(ts) AS launch_time, min(ts + dur) AS launched
FROM trace_event
WHERE ph = 'X' AND regexp_matches(cat, '_(runtime|driver)$') AND correlation > 0 AND ts IS NOT NULL
GROUP BY run_id, source, correlation
ORDER BY run_id, source, correlation
