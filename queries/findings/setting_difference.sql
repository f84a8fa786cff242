/*---
title    = "Ranks run with different settings"
doc      = "A setting of which ranks (or hosts) of one run state different values, where each of them states one: batch sizes, precision, sharding and switches of the communication library have to agree. What names a rank, a device, a path or a port differs by design and is left out."
fault    = "crash"
severity = "note"
reads    = ["config"]
summary  = "{name} is not the same everywhere: {text}"
[returns]
name = "VARCHAR"
text = "VARCHAR"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "one rank trains with another batch size"
given.config = """
kind    | key                         | value | rank | source | line
trainer | per_device_train_batch_size | "4"   | 0    | a      | 1
trainer | per_device_train_batch_size | "4"   | 1    | b      | 1
trainer | per_device_train_batch_size | "8"   | 2    | c      | 1
trainer | local_rank                  | "0"   | 0    | a      | 2
trainer | local_rank                  | "1"   | 1    | b      | 2
"""
expect = """
name                        | text                         | source | line
per_device_train_batch_size | "4" (rank 0 and 1 more), "8" (rank 2) | a      | 1
"""
[[case]]
name = "a variable of one host"
given.config = """
kind        | key            | value | host | source | line
environment | NCCL_IB_DISABLE | "1"  | n1   | a      | 1
environment | NCCL_IB_DISABLE | "0"  | n2   | a      | 2
"""
expect = """
name            | text
NCCL_IB_DISABLE | "0" (n2), "1" (n1)
"""
[[case]]
name = "a value that one rank printed twice, at two attempts"
given.config = """
kind    | key | value | rank | source | line
trainer | lr  | "4"   | 0    | a      | 1
trainer | lr  | "8"   | 0    | a      | 9
"""
expect = "name | text"
---*/
WITH stated AS (
    SELECT
        run_id, kind, key, value, source, line,
        CASE WHEN rank IS NOT NULL THEN 'rank ' || rank ELSE host END AS place
    FROM config
    WHERE
        (rank IS NOT NULL OR host IS NOT NULL)
        AND NOT regexp_matches(
            key, '(?i)(^|[_.])(n_gpu|rank|device|host|hostname|node|port|addr|address|path|file|dir|name|command|proc|pid|index|time|seed|ifname|state)s?$|visible|world_info'
        )
),

single AS (  -- a place that states two values changed its mind, or was started again
    SELECT run_id, kind, key, place, min(value) AS value, min(source) AS source, min(line) AS line
    FROM stated
    GROUP BY run_id, kind, key, place
    HAVING count(DISTINCT value) = 1
),

valued AS (
    SELECT run_id, kind, key, value, min(place) AS place, count(*) AS places, min(source) AS source, min(line) AS line
    FROM single
    GROUP BY run_id, kind, key, value
)

SELECT
    key AS name,
    string_agg(value || ' (' || place || if(places > 1, ' and ' || (places - 1) || ' more', '') || ')', ', ' ORDER BY value) AS text,
    min(source) AS source,
    min(line) AS line
FROM valued
GROUP BY run_id, kind, key
HAVING count(*) > 1
ORDER BY name
