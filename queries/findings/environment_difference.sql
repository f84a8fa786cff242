/*---
title    = "Hosts differ in their versions"
doc      = "Versions or devices of which hosts of one run state different values. A value that only one host states is no difference."
fault    = "crash"
severity = "evidence"
reads    = ["environment"]
summary  = "{name} is not the same on all hosts: {text}"
[returns]
name = "VARCHAR"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "two drivers"
given.environment = """
host | name   | value | line
a    | driver | 550   | 1
b    | driver | 535   | 2
a    | torch  | 2.13  | 3
b    | torch  | 2.13  | 4
"""
expect = """
name   | text
driver | 535 (b), 550 (a)
"""
[[case]]
name = "one host, or values without a host"
given.environment = """
host | name   | value
a    | driver | 550
     | driver | 535
"""
expect = "name"
---*/
WITH stated AS (
    SELECT name, value, min(host) AS host, count(DISTINCT host) AS hosts, min(source) AS source, min(line) AS line
    FROM environment
    WHERE host IS NOT NULL
    GROUP BY name, value
)

SELECT
    name,
    string_agg(value || ' (' || host || if(hosts > 1, ' and ' || (hosts - 1) || ' more', '') || ')', ', ' ORDER BY value) AS text,
    min(source) AS source,
    min(line) AS line
FROM stated
GROUP BY name
HAVING count(*) > 1 AND count(DISTINCT host) > 1
ORDER BY name
