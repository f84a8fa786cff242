/*---
title = "Versions, devices and variables that differ between the hosts or ranks of a run"
doc   = "Where one place states several values of a name, it is listed too: devices of two models in one host."
reads = ["environment_fact"]
[returns]
run_id = "VARCHAR"
name = "VARCHAR"
values = "VARCHAR[]"
where_found = "VARCHAR[]"
[[case]]
name = "one host has another driver; another has two models of devices"
given.environment_fact = """
place | name   | value | several
a     | driver | 550.1 | false
b     | driver | 550.2 | false
c     | driver | 550.2 | false
a     | nccl   | 2.27  | false
b     | nccl   | 2.27  | false
c     | gpu    | A, B  | true
"""
expect = """
name   | values             | where_found
driver | ['550.1', '550.2'] | ['a', 'b, c']
gpu    | ['A, B']           | ['c']
"""
---*/
WITH stated AS (
    SELECT run_id, name, value, bool_or(several) AS several, string_agg(place, ', ' ORDER BY place) AS places
    FROM environment_fact
    GROUP BY run_id, name, value
)

SELECT
    run_id, name,
    list(value ORDER BY value) AS values,
    list(places ORDER BY value) AS where_found
FROM stated
GROUP BY run_id, name
HAVING count(*) > 1 OR bool_or(several)
ORDER BY run_id, name
