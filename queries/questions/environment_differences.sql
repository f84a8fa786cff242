/*---
title = "Versions and devices that differ between the hosts or ranks of a run"
reads = ["environment"]
[returns]
run_id = "VARCHAR"
name = "VARCHAR"
values = "VARCHAR[]"
where_found = "VARCHAR[]"
[[case]]
name = "one host has another driver"
given.environment = """
host | name   | value
a    | driver | 550.1
b    | driver | 550.2
a    | nccl   | 2.27
b    | nccl   | 2.27
"""
expect = """
name   | values             | where_found
driver | ['550.1', '550.2'] | ['a', 'b']
"""
---*/
WITH stated AS (
    SELECT
        run_id, name, value,
        array_to_string(
            list_sort(list_distinct(list(coalesce(host, 'rank ' || rank, 'local rank ' || local_rank, source)))), ', '
        ) AS places
    FROM environment
    GROUP BY run_id, name, value
)

SELECT
    run_id, name,
    list(value ORDER BY value) AS values,
    list(places ORDER BY value) AS where_found
FROM stated
GROUP BY run_id, name
HAVING count(*) > 1
ORDER BY run_id, name
