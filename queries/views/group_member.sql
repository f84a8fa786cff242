/*---
title = "Members of every process group"
doc   = """
Where no source lists the members (gloo, logs), they are every known rank for the default group; for any other the
ranks that speak of it, and possibly every rank that left no evidence at all. `stated` is false then."""
reads = ["process_group", "collective_statement", "rank_in_group", "known_rank"]
materialize = true
[returns]
group_key = "VARCHAR"
group_name = "VARCHAR"
group_desc = "VARCHAR"
rank = "INTEGER"
group_rank = "BIGINT"
size = "BIGINT"
stated = "BOOLEAN"
[[case]]
name = "stated members, and for gloo those seen and those never heard of"
given.process_group = """
group_name | group_desc | members | members_hash
0          | default_pg | [2, 5]  | aa
"""
given.collective_statement = """
group_key | group_name | group_desc | rank | statement
0#aa      | 0          | default_pg | 2    | entry
1         | 1          |            | 0    | entry
1         | 1          |            | 1    | entry
7f        | 7f         |            | 1    | count
"""
given.rank_in_group = """
group_key | rank
0#aa      | 2
1         | 0
1         | 1
"""
given.known_rank = """
rank
0
1
2
5
"""
expect = """
group_key | rank | group_rank | size | stated
0#aa      | 2    | 0          | 2    | true
0#aa      | 5    | 1          | 2    | true
1         | 0    |            | 3    | false
1         | 1    |            | 3    | false
1         | 5    |            | 3    | false
"""
---*/
WITH listed AS (
    SELECT
        group_name || '#' || members_hash AS group_key,
        any_value(group_name) AS group_name,
        any_value(group_desc) AS group_desc,
        any_value(members) AS members
    FROM process_group
    GROUP BY group_name || '#' || members_hash
),

stated AS (
    SELECT
        group_key,
        group_name,
        group_desc,
        unnest(members) AS rank,
        unnest(range(len(members))) AS group_rank,
        len(members) AS size,
        TRUE AS stated
    FROM listed
),

unlisted AS (
    SELECT group_key, any_value(group_name) AS group_name, any_value(group_desc) AS group_desc
    FROM collective_statement
    WHERE statement IN ('entry', 'status') AND group_key NOT IN (SELECT group_key FROM listed)
    GROUP BY group_key
),

silent AS (
    SELECT rank FROM known_rank
    WHERE rank NOT IN (SELECT rank FROM rank_in_group)
),

guessed AS (
    SELECT u.group_key, u.group_name, u.group_desc, r.rank
    FROM unlisted AS u INNER JOIN rank_in_group AS r ON u.group_key = r.group_key
    UNION
    SELECT u.group_key, u.group_name, u.group_desc, s.rank
    FROM unlisted AS u CROSS JOIN silent AS s
    UNION
    SELECT u.group_key, u.group_name, u.group_desc, k.rank
    FROM unlisted AS u CROSS JOIN known_rank AS k
    WHERE u.group_desc = 'default_pg'
)

SELECT group_key, group_name, group_desc, rank, group_rank, size, stated
FROM stated
UNION ALL
SELECT
    group_key,
    group_name,
    group_desc,
    rank,
    CAST(NULL AS BIGINT) AS group_rank,
    count(*) OVER (PARTITION BY group_key) AS size,
    FALSE AS stated
FROM guessed
ORDER BY group_key, rank
