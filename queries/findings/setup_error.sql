/*---
title    = "The exception is one of the setup"
doc      = "An exception that speaks of what was installed, configured or already running, rather than of the training: imports and libraries that are missing, a driver that does not fit, devices that are not there, an address that is taken or unknown, kernels that cannot be built, batch sizes that do not fit the world."
fault    = "crash"
severity = "evidence"
reads    = ["own_exception"]
summary  = "{text}"
[returns]
rank = "INTEGER"
time = "BIGINT"
source = "VARCHAR"
line = "BIGINT"
text = "VARCHAR"
[[case]]
name = "it fires"
given.own_exception = """
rank | text                                                            | of_memory | source | line
0    | ModuleNotFoundError: No module named x                          | false     | log    | 5
1    | RuntimeError: The NVIDIA driver on your system is too old       | false     | log    | 7
2    | torch.distributed.DistNetworkError: code: -98, name: EADDRINUSE | false     | log    | 9
"""
expect = """
rank | line
0    | 5
1    | 7
2    | 9
"""
[[case]]
name = "it does not"
given.own_exception = """
rank | text                   | of_memory | source | line
0    | ValueError: bad sample | false     | log    | 5
"""
expect = "rank"
---*/
SELECT rank, time, source, line, text
FROM own_exception
WHERE
    NOT of_memory
    AND regexp_matches(
        text,
        '^(?:\w+\.)*(?:ModuleNotFoundError|ImportError|CUDAMismatchException|DeepSpeedConfigError|HFValidationError)\b'
        || '|undefined symbol|cannot open shared object file|version `\S+'' not found|Error building extension|CUDA_HOME|not compiled with CUDA'
        || '|driver on your system is too old|CUDA driver version is insufficient|Error 80[0-9]: |unsupported display driver|forward compatibility was attempted'
        || '|No CUDA GPUs are available|no CUDA-capable device|invalid device ordinal|no kernel image is available|busy or unavailable'
        || '|EADDRINUSE|[Aa]ddress already in use|Cannot assign requested address|Name or service not known|[Tt]emporary failure in name resolution'
        || '|Check batch related parameters|is not divisible by (?:the )?(?:world|number of)|Invalid device id|unrecognized arguments'
    )
ORDER BY time NULLS LAST, source, line
