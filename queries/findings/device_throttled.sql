/*---
title    = "A device was slowed down to protect itself"
doc      = "Clock limits for heat or power that nvidia-smi reported as active, by host and reason. A cap of power in software is normal for some devices and is not counted."
severity = "evidence"
reads    = ["events"]
summary  = "{reason} was active {times} times on {host}"
[returns]
host = "VARCHAR"
reason = "VARCHAR"
times = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "heat, and a cap of power that does not count"
given.events = """
kind     | host | name                | time | line | message
throttle | n1   | hw_thermal_slowdown | 5    | 7    | device 0
throttle | n1   | hw_thermal_slowdown | 9    | 8    | device 0
throttle | n1   | sw_power_cap        | 9    | 9    | device 0
"""
expect = """
host | reason              | times | time | line | text
n1   | hw_thermal_slowdown | 2     | 5    | 7    | device 0
"""
[[case]]
name = "nothing was slowed down"
given.events = """
kind     | host | name         | time | line
throttle | n1   | sw_power_cap | 9    | 9
"""
expect = "host | reason | times"
---*/
SELECT
    coalesce(host, 'a host that is not named') AS host,
    name AS reason,
    count(*) AS times,
    min(time) AS time,
    arg_min(source, line) AS source,
    min(line) AS line,
    arg_min(message, line) AS text
FROM events
WHERE kind = 'throttle' AND lower(replace(name, ' ', '_')) <> 'sw_power_cap'
GROUP BY coalesce(host, 'a host that is not named'), name
ORDER BY times DESC, host, reason
