/*---
title = "Hosts that the run names"
reads = ["event", "process", "environment"]
[returns]
host = "VARCHAR"
[[case]]
name = "each once"
given.process = """
host
b
a
a
"""
expect = """
host
a
b
"""
---*/
SELECT host FROM process WHERE host IS NOT NULL
UNION
SELECT host FROM event WHERE host IS NOT NULL
UNION
SELECT host FROM environment WHERE host IS NOT NULL
ORDER BY host
