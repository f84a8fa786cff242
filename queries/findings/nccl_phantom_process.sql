/*---
title    = "Records of NCCL that were glued together make up processes"
doc      = "Several processes writing to one pipe mix their records. Processes that only such records speak of are left out of all counts."
severity = "note"
reads    = ["nccl_process"]
summary  = "{n} processes that NCCL's output seems to speak of never were: records were glued together"
[returns]
rank = "INTEGER"
host = "VARCHAR"
pid = "BIGINT"
records = "BIGINT"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "one made up"
given.nccl_process = """
host  | pid | records | believed
n1    | 10  | 2       | true
xyzn1 | 10  | 1       | false
"""
expect = """
host  | pid | records
xyzn1 | 10  | 1
"""
[[case]]
name = "none"
given.nccl_process = """
host  | pid | records | believed
n1    | 10  | 2       | true
"""
expect = "host"
---*/
SELECT
    CAST(NULL AS INTEGER) AS rank,
    host,
    pid,
    records,
    CAST(NULL AS BIGINT) AS step,
    CAST(NULL AS BIGINT) AS time,
    CAST(NULL AS VARCHAR) AS source,
    CAST(NULL AS BIGINT) AS line,
    host || ':' || pid AS text
FROM nccl_process
WHERE NOT believed
ORDER BY host, pid
