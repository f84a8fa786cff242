/*---
title = "Who waits for whom"
doc = "One row per blocker, operation and reason, with the ranks that wait for it there."
reads = ["wait_edge"]
[params]
most = { type = "INTEGER", default = 200, doc = "Rows at most." }
[returns]
blocker = "INTEGER"
operation = "VARCHAR"
seq = "BIGINT"
reason = "VARCHAR"
known = "BOOLEAN"
waiters = "INTEGER[]"
[[case]]
name = "two ranks wait for a third"
given.wait_edge = """
waiter | blocker | seq | operation  | reason     | known
0      | 1       | 68  | all_reduce | not joined | true
2      | 1       | 68  | all_reduce | not joined | true
"""
expect = """
blocker | operation  | seq | reason     | known | waiters
1       | all_reduce | 68  | not joined | true  | [0, 2]
"""
---*/
SELECT
    blocker,
    operation,
    seq,
    reason,
    known,
    list(DISTINCT waiter ORDER BY waiter) AS waiters
FROM wait_edge
GROUP BY blocker, operation, seq, reason, known
ORDER BY known DESC, len(waiters) DESC, blocker, seq
LIMIT $most
