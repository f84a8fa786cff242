/*---
title    = "Hosts differ in their versions"
doc      = "Versions or devices of which hosts (or ranks) of one run state different values, whatever their wording. A value that only one host states is no difference, nor are addresses and paths."
fault    = "crash"
severity = "evidence"
reads    = ["environment_fact"]
summary  = "{names} not the same on all hosts, {name}: {text}"
[returns]
names = "VARCHAR"
name = "VARCHAR"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "two drivers; devices of two models on each host alike; one host alone says which kernel it runs"
given.environment_fact = """
place | placed | name   | value | several | source | line
a     | true   | driver | 550   | false   | x      | 1
b     | true   | driver | 535   | false   | x      | 2
c     | true   | driver | 535   | false   | x      | 2
a     | true   | gpu    | A, B  | true    | x      | 3
b     | true   | gpu    | A, B  | true    | x      | 4
a     | true   | kernel | 5.15  | false   | x      | 5
a     | true   | cuda   | 12.4  | false   | x      | 6
c     | true   | cuda   | 12.1  | false   | x      | 7
"""
expect = """
names        | name   | text                          | line
cuda, driver | cuda   | 12.1 (c), 12.4 (a)            | 6
cuda, driver | driver | 535 (b and 1 more), 550 (a)   | 1
"""
[[case]]
name = "one host, or values without a host; variables are settings"
given.environment_fact = """
place | placed | name            | value
a     | true   | driver          | 550
x.log | false  | driver          | 535
a     | true   | NCCL_IB_DISABLE | 1
b     | true   | NCCL_IB_DISABLE | 0
"""
expect = "name"
---*/
WITH stated AS (
    SELECT name, value, min(place) AS place, count(*) AS places, min(source) AS source, min(line) AS line
    FROM environment_fact
    WHERE placed AND NOT regexp_full_match(name, '[A-Z][A-Z0-9_]+')
    GROUP BY name, value
),

differing AS (
    SELECT
        name,
        string_agg(value || ' (' || place || if(places > 1, ' and ' || (places - 1) || ' more', '') || ')', ', ' ORDER BY value) AS text,
        min(source) AS source,
        min(line) AS line
    FROM stated
    GROUP BY name
    HAVING count(*) > 1
)

SELECT
    (SELECT string_agg(every.name, ', ' ORDER BY every.name) FROM differing AS every) AS names,
    name, text, source, line
FROM differing
ORDER BY name
