"""The statistics that SQL cannot express: pure functions on arrays that import nothing of ours.

| question | function |
|---|---|
| how long is a typical step, with what certainty | `median_interval` |
| how much longer after than before, and is it a verdict | `ratio_of_medians`, `judge_ratio` |
| the same with several runs a side; how much runs differ by chance | `ratio_of_run_medians`, `run_noise` |
| two runs' step times from warm-up to verdict, with tails and jitter | `compare_step_times` |
| since which step, and by how much | `change_points` |
| which steps are ordinary | `warm_up`, `steady` |
| does memory grow, when does it run out | `growth`, `time_to_limit` |
| how long must it stay clean, is it rarer | `clean_exposure_needed`, `rate_upper_bound`, `exact_rate_test` |
| did the loss spike and recover, do two curves part | `spikes`, `paired_difference`, `first_difference` |
| what carries a change | `contributions`, `false_discovery` |
"""

from postmortem.stats.change import ChangePoint, change_points, location_interval, optimal_partition
from postmortem.stats.growth import Growth, growth, period, sen_slope, time_to_limit
from postmortem.stats.loss import (
    Spike,
    first_difference,
    first_not_finite,
    paired_difference,
    shift_interval,
    spikes,
)
from postmortem.stats.medians import (
    Interval,
    Ratio,
    autocorrelation_time,
    effective_size,
    median_interval,
    order_ranks,
    quantile_interval,
    ratio_of_medians,
    ratio_of_run_medians,
    run_noise,
    spread,
)
from postmortem.stats.rates import (
    RateTest,
    clean_exposure_needed,
    exact_rate_test,
    rate_interval,
    rate_upper_bound,
)
from postmortem.stats.shares import Contribution, contributions, false_discovery
from postmortem.stats.throughput import StepTimes, compare_step_times, split_run
from postmortem.stats.verdict import EQUIVALENCE, REGRESSION, Judgement, judge_ratio, judge_runs
from postmortem.stats.warmup import mser, slow_start, steady, warm_up

__all__ = [
    "EQUIVALENCE",
    "REGRESSION",
    "ChangePoint",
    "Contribution",
    "Growth",
    "Interval",
    "Judgement",
    "RateTest",
    "Ratio",
    "Spike",
    "StepTimes",
    "autocorrelation_time",
    "change_points",
    "clean_exposure_needed",
    "compare_step_times",
    "contributions",
    "effective_size",
    "exact_rate_test",
    "false_discovery",
    "first_difference",
    "first_not_finite",
    "growth",
    "judge_ratio",
    "judge_runs",
    "location_interval",
    "median_interval",
    "mser",
    "optimal_partition",
    "order_ranks",
    "paired_difference",
    "period",
    "quantile_interval",
    "rate_interval",
    "rate_upper_bound",
    "ratio_of_medians",
    "ratio_of_run_medians",
    "run_noise",
    "sen_slope",
    "shift_interval",
    "slow_start",
    "spikes",
    "split_run",
    "spread",
    "steady",
    "time_to_limit",
    "warm_up",
]
