/*---
title = "Settings, versions and topology that differ between two runs"
doc   = "Configuration keys with another value, versions and devices of the environment, the number of ranks and hosts. Where several sources of a run state a key, the last one counts. A change that several kinds of settings state alike is listed once. Paths and ports of a single run are listed too."
reads = ["setting", "environment_fact", "run_summary"]
[params]
before = { type = "VARCHAR", default = "before", doc = "Run before the fix." }
after = { type = "VARCHAR", default = "after", doc = "Run after the fix." }
[returns]
kind = "VARCHAR"
what = "VARCHAR"
before_value = "VARCHAR"
after_value = "VARCHAR"
[[case]]
name = "a halved micro batch, a new key, one rank more"
given.setting = """
run_id | kind      | key   | value
before | deepspeed | micro | 4
after  | deepspeed | micro | 2
before | deepspeed | same  | 1
after  | deepspeed | same  | 1
after  | deepspeed | new   | true
"""
given.run_summary = """
name   | world_size | hosts
before | 4          | [a]
after  | 8          | [b]
"""
expect = """
kind      | what       | before_value | after_value
deepspeed | micro      | 4            | 2
deepspeed | new        |              | true
topology  | world_size | 4            | 8
"""
[[case]]
name = "the configuration, the engine and the command line say the same"
given.setting = """
run_id | kind      | key   | value
before | arguments | micro | 4
before | deepspeed | micro | 4
before | engine    | micro | 4
after  | arguments | micro | 2
after  | deepspeed | micro | 2
after  | engine    | micro | 2
"""
expect = """
kind      | what  | before_value | after_value
arguments | micro | 4            | 2
"""
---*/
WITH settings AS (
    SELECT run_id, kind, key AS what, max(value) AS value
    FROM setting
    WHERE run_id IN ($before, $after)
    GROUP BY run_id, kind, key
),

versions AS (
    SELECT
        run_id, 'environment' AS kind, name AS what,
        array_to_string(list_sort(list_distinct(list(value))), ', ') AS value
    FROM environment_fact
    WHERE run_id IN ($before, $after) AND NOT regexp_full_match(name, '[A-Z][A-Z0-9_]+')
    GROUP BY run_id, name
),

sizes AS (
    SELECT name AS run_id, 'topology' AS kind, 'world_size' AS what, CAST(world_size AS VARCHAR) AS value
    FROM run_summary
    UNION ALL
    SELECT name, 'topology', 'hosts', CAST(nullif(len(hosts), 0) AS VARCHAR) FROM run_summary
),

everything AS (
    SELECT run_id, kind, what, value FROM settings
    UNION ALL
    SELECT run_id, kind, what, value FROM versions
    UNION ALL
    SELECT run_id, kind, what, value FROM sizes WHERE value IS NOT NULL
),

-- A kind of settings that only one run recorded says nothing about a change, nor does a version that only one states.
recorded AS (
    SELECT kind FROM everything GROUP BY kind HAVING count(DISTINCT run_id) = 2
),

paired AS (
    SELECT
        kind, what,
        max(value) FILTER (WHERE run_id = $before) AS before_value,
        max(value) FILTER (WHERE run_id = $after) AS after_value
    FROM everything
    WHERE kind IN (SELECT kind FROM recorded)
    GROUP BY kind, what
)

SELECT kind, what, before_value, after_value
FROM paired
WHERE
    before_value IS DISTINCT FROM after_value
    AND (kind NOT IN ('environment', 'topology') OR (before_value IS NOT NULL AND after_value IS NOT NULL))
QUALIFY row_number() OVER (PARTITION BY what, before_value, after_value ORDER BY kind) = 1
ORDER BY kind, what
