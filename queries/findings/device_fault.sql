/*---
title    = "A device, link or host reported a fault of its own"
doc      = "Kernel messages with a code whose cause is the device, its link or its firmware, joined to a rank by process id or bus id where one is known, else to the only rank of that host on which a call of the device's runtime failed, with what the code means and what to do first. Codes that only follow from a program's error are left out: their root is in the program's own log. Where every process of the run ended well, the fault hit something else; where it lies hours away from the run and only the zone of a clock may explain that, it counts only beside an error of a device in the run's own logs."
fault    = "crash"
severity = "fault"
weight   = 4
confidence = "high"
reads    = ["events", "rank_host", "run_summary", "xid_meaning"]
summary  = "{what} ({place}): {meaning}"
[returns]
rank = "INTEGER"
step = "BIGINT"
code = "BIGINT"
what = "VARCHAR"
place = "VARCHAR"
meaning = "VARCHAR"
action = "VARCHAR"
times = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "a device left the bus"
given.run_summary = """
end
failed
"""
given.xid_meaning = """
code | class  | meaning   | action
79   | device | gone      | reboot
31   | program | address  | sanitizer
"""
given.events = """
kind | role    | rank | host | code | line | message           | detail
xid  | root    | 3    | n1   | 79   | 5    | fallen off        | {"pci":"0000:3b:00"}
xid  | root    | 3    | n1   | 79   | 6    | fallen off        | {"pci":"0000:3b:00"}
xid  | symptom | 3    | n1   | 31   | 7    | MMU Fault         | {"pci":"0000:3b:00"}
"""
expect = """
rank | code | what   | place          | meaning | action | times | line
3    | 79   | Xid 79 | n1 0000:3b:00  | gone    | reboot | 2     | 5
"""
[[case]]
name = "a device whose rank is not known, on a host of which one rank had a device error"
given.xid_meaning = """
code | class  | meaning | action
79   | device | gone    | reboot
"""
given.rank_host = """
host | rank
n1   | 3
n1   | 4
n2   | 5
"""
given.events = """
kind         | role | rank | host | code | after_step | line
xid          | root |      | n1.x | 79   |            | 5
device_error | root | 4    |      |      | 30         | 9
device_error | root | 5    |      |      | 30         | 9
"""
expect = """
rank | code | step | line
4    | 79   | 31   | 5
"""
[[case]]
name = "hours away from the run, if its clock has the zone of the run's"
given.xid_meaning = """
code | class  | meaning | action
79   | device | gone    | reboot
"""
given.events = """
kind | role    | rank | host | code | line | message    | clock
xid  | root    | 3    | n1   | 79   | 5    | fallen off | other
"""
expect = "rank | code | what"
[[case]]
name = "a program's own error"
given.xid_meaning = """
code | class   | meaning | action
31   | program | address | sanitizer
"""
given.events = """
kind | role    | rank | host | code | line | message
xid  | symptom | 3    | n1   | 31   | 7    | MMU Fault
"""
expect = "rank | code | what"
[[case]]
name = "every process ended well"
given.run_summary = """
end
completed
"""
given.events = """
kind | role | host | code | line | message
xid  | root | n1   | 79   | 5    | fallen off
"""
expect = "rank | code | what"
---*/
WITH failing AS (
    SELECT h.host, min(d.rank) AS rank, min(coalesce(d.step, d.after_step + 1)) AS step
    FROM events AS d
    INNER JOIN rank_host AS h ON d.rank = h.rank
    WHERE d.kind = 'device_error' AND d.role = 'root'
    GROUP BY h.host
    HAVING count(DISTINCT d.rank) = 1
)

SELECT
    coalesce(any_value(e.rank), any_value(f.rank)) AS rank,
    min(coalesce(e.step, e.after_step + 1, f.step)) AS step,
    e.code,
    CASE e.kind WHEN 'xid' THEN 'Xid ' || e.code ELSE 'SXid ' || e.code END AS what,
    concat_ws(' ', e.host, e.detail ->> '$.pci') AS place,
    coalesce(any_value(x.meaning), any_value(e.name), 'no meaning is known for this code') AS meaning,
    coalesce(any_value(x.action), 'look it up in the catalogue of the driver') AS action,
    count(*) AS times,
    min(e.time) AS time,
    arg_min(e.source, e.line) AS source,
    min(e.line) AS line,
    arg_min(e.message, e.line) AS text
FROM events AS e
LEFT JOIN failing AS f ON e.rank IS NULL AND host_name(e.host) = f.host
LEFT JOIN xid_meaning AS x ON e.kind = 'xid' AND e.code = x.code
WHERE
    (e.clock IS DISTINCT FROM 'other' OR EXISTS (SELECT 1 FROM events AS d WHERE d.kind = 'device_error' AND d.role = 'root'))
    AND e.kind IN ('xid', 'sxid') AND e.role = 'root' AND coalesce(x.class, 'device') IN ('device', 'link', 'driver')
    AND NOT EXISTS (SELECT 1 FROM run_summary AS s WHERE s."end" = 'completed')
GROUP BY e.kind, e.code, e.host, e.detail ->> '$.pci'
ORDER BY time NULLS LAST, source, line
