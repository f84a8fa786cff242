/*---
title    = "The loss scale fell to 1 or less"
doc      = "The dynamic loss scale stood at 1 or less at the end after it had been a hundred times larger. A scale that recovers is the normal search and is not listed."
fault    = "nan_inf"
severity = "evidence"
reads    = ["loss_scale_path"]
summary  = "the loss scale fell to {scale}"
[returns]
scale = "DOUBLE"
step = "BIGINT"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
[[case]]
name = "from 65536 to 1 and not back"
given.loss_scale_path = """
highest | scale | step | line
65536   | 1     | 3    | 3
"""
expect = """
scale | step | line
1     | 3    | 3
"""
[[case]]
name = "fell and recovered; or was small from the start"
given.loss_scale_path = """
run_id | highest | scale | step | line
a      | 65536   | 512   | 3    | 3
b      | 8       | 1     | 3    | 3
"""
expect = "scale"
---*/
SELECT scale, step, time, source, line
FROM loss_scale_path
WHERE scale <= 1 AND highest >= 100 * scale
