/*---
title    = "The processes never all came together"
doc      = "Processes waited at the start for others that did not come: at the rendezvous, for the clients of the store, for the process that keeps it. Who waits is not at fault, and none of the absent has written why: nobody is named."
fault    = "crash"
severity = "fault"
weight   = 1
confidence = "high"
reads    = ["events", "run_summary", "stop"]
summary  = "the processes never all came together: {text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.events = """
kind      | role    | rank | name | message | line
exception | symptom | 0    | torch.distributed.DistStoreError | Timed out after 601 seconds waiting for clients. 4/8 clients joined. | 5
"""
expect = """
rank | line
     | 5
"""
[[case]]
name = "it does not"
given.events = """
kind      | role    | rank | name | message | line
exception | symptom | 0    | torch.distributed.DistStoreError | Timed out after 601 seconds waiting for clients. 4/8 clients joined. | 5
exception | root    | 4    | ImportError | x | 4
"""
expect = "rank"
---*/
SELECT CAST(NULL AS INTEGER) AS rank, e.time, e.source, e.line, e.name || ': ' || coalesce(e.message, '') AS text
FROM events AS e
WHERE
    e.kind = 'exception' AND e.role = 'symptom'
    AND regexp_matches(e.name || ': ' || coalesce(e.message, ''), 'RendezvousTimeoutError|waiting for clients|wait timeout after \d+ms, keys|client socket has (?:timed out|failed to connect)')
    AND NOT EXISTS (SELECT 1 FROM events AS o WHERE o.role = 'root')
    AND NOT EXISTS (SELECT 1 FROM stop)
    AND NOT EXISTS (SELECT 1 FROM run_summary AS s WHERE s."end" = 'completed' OR s.last_step IS NOT NULL)
ORDER BY e.time NULLS LAST, e.source, e.line
