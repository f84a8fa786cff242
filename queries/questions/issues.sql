/*---
title = "What could not be read, and why"
reads = ["issue"]
[returns]
run_id = "VARCHAR"
source = "VARCHAR"
kind = "VARCHAR"
line = "BIGINT"
offset = "BIGINT"
dropped = "BIGINT"
message = "VARCHAR"
[[case]]
name = "as they are"
given.issue = """
source | kind      | message
a.gz   | truncated | It ends too early.
"""
expect = """
source | kind      | message
a.gz   | truncated | It ends too early.
"""
---*/
SELECT run_id, source, kind, line, "offset", dropped, message
FROM issue
ORDER BY run_id, source, line, "offset"
