/*---
title    = "The run made steps"
doc      = "Ten steps or more were printed: what was so from the beginning (versions, settings) did not keep the run from working."
severity = "evidence"
reads    = ["run_summary"]
summary  = "steps {first_step} to {last_step} were made"
[returns]
first_step = "BIGINT"
last_step = "BIGINT"
[[case]]
name = "forty steps"
given.run_summary = """
name | first_step | last_step
run  | 1          | 40
"""
expect = """
first_step | last_step
1          | 40
"""
[[case]]
name = "one step only"
given.run_summary = """
name | first_step | last_step
run  | 1          | 1
"""
expect = "first_step"
---*/
SELECT first_step, last_step
FROM run_summary
WHERE last_step - first_step >= 9
