/*---
title = "Every host name that a run gives away"
doc   = "Hosts that any table names, those of the launcher's mapping (WORLD INFO DICT, global_rank_mapping), of MASTER_ADDR and rendezvous settings and of logins (user@host). Redacted reports replace them all."
reads = ["line", "event", "process", "environment", "config", "source", "trace", "collective_evidence", "nccl_comm", "nccl_channel"]
[returns]
host = "VARCHAR"
[[case]]
name = "a column, a mapping, a setting and a login; numbers and localhost are no names"
given.process = """
host
node-1
"""
given.line = """
line | text
1    | WORLD INFO DICT: {'node-2': [0, 1], 'localhost': [2]}
2    | export MASTER_ADDR=node-3
3    | ssh jim@node-4 ls, recall@all
4    | MASTER_ADDR=10.0.0.1
5    | step 5: loss=3
"""
expect = """
host
node-1
node-2
node-3
node-4
"""
---*/
WITH said AS (
    SELECT text FROM line
    WHERE
        contains(text, 'WORLD INFO DICT') OR contains(text, 'global_rank_mapping') OR contains(text, '@')
        OR contains(upper(text), 'MASTER_ADDR') OR contains(text, 'rdzv')
    UNION ALL
    SELECT name || '=' || value AS text FROM environment
    UNION ALL
    SELECT key || '=' || trim(CAST(value AS VARCHAR), '"') AS text FROM config
),

named AS (
    SELECT unnest(regexp_extract_all(text, '''([A-Za-z][\w.\-]*)'': \[', 1)) AS host FROM said
    UNION ALL
    SELECT unnest(
        regexp_extract_all(text, '(?i)(?:master[_-]?addr|rdzv[_-]?endpoint|hostname|nodename)\W{1,4}([a-z][\w\-]+)', 1)
    ) FROM said
    UNION ALL
    SELECT unnest(regexp_extract_all(text, '\w@([A-Za-z][\w\-]*[\d\-][\w\-]*)', 1)) FROM said
    UNION ALL
    SELECT unnest([h.host]) FROM (
        SELECT CAST(host AS VARCHAR) AS host FROM line
        UNION
        SELECT host FROM event
        UNION
        SELECT host FROM process
        UNION
        SELECT host FROM environment
        UNION
        SELECT host FROM config
        UNION
        SELECT host FROM source
        UNION
        SELECT host FROM trace
        UNION
        SELECT host FROM collective_evidence
        UNION
        SELECT host FROM nccl_comm
        UNION
        SELECT host FROM nccl_channel
    ) AS h
)

SELECT DISTINCT host FROM named
WHERE host IS NOT NULL AND host NOT IN ('', 'localhost')
ORDER BY host
