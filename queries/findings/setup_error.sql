/*---
title    = "The exception is one of the setup"
doc      = "An exception that speaks of what was installed, configured or already running, rather than of the training: imports and libraries that are missing, a driver that does not fit, devices that are not there, an address that is taken or unknown, kernels that cannot be built, batch sizes that do not fit the world."
fault    = "crash"
severity = "evidence"
reads    = ["events", "outlived"]
summary  = "{text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.events = """
kind      | role | rank | name                | message          | source | line
exception | root | 0    | ModuleNotFoundError | No module named x | log    | 5
exception | root | 1    | RuntimeError | The NVIDIA driver on your system is too old | log | 7
exception | root | 2    | torch.distributed.DistNetworkError | code: -98, name: EADDRINUSE | log | 9
"""
expect = """
rank | line
0    | 5
1    | 7
2    | 9
"""
[[case]]
name = "it does not"
given.events = """
kind      | role | rank | name       | message    | source | line
exception | root | 0    | ValueError | bad sample | log    | 5
"""
expect = "rank"
---*/
SELECT e.rank, e.time, e.source, e.line, e.name || ': ' || coalesce(e.message, '') AS text
FROM events AS e
LEFT JOIN outlived AS o
    ON e.run_id = o.run_id AND e.source = o.source AND e.line = o.line AND e.part IS NOT DISTINCT FROM o.part
WHERE
    e.kind = 'exception' AND e.role = 'root' AND coalesce(o.steps, 0) <= 2
    AND NOT EXISTS (SELECT 1 FROM events AS m WHERE m.kind = 'oom' AND m.source = e.source AND m.line = e.line)
    AND regexp_matches(
        e.name || ': ' || coalesce(e.message, ''),
        '^(?:\w+\.)*(?:ModuleNotFoundError|ImportError|CUDAMismatchException|DeepSpeedConfigError|HFValidationError)\b'
        || '|undefined symbol|cannot open shared object file|version `\S+'' not found|Error building extension|CUDA_HOME|not compiled with CUDA'
        || '|driver on your system is too old|CUDA driver version is insufficient|Error 80[0-9]: |unsupported display driver|forward compatibility was attempted'
        || '|No CUDA GPUs are available|no CUDA-capable device|invalid device ordinal|no kernel image is available|busy or unavailable'
        || '|EADDRINUSE|[Aa]ddress already in use|Cannot assign requested address|Name or service not known|[Tt]emporary failure in name resolution'
        || '|Check batch related parameters|is not divisible by (?:the )?(?:world|number of)|Invalid device id|unrecognized arguments'
    )
ORDER BY e.time NULLS LAST, e.source, e.line
