"""Hypothesis tries the same examples each time.

Engines wait for their kernels, so that what is tested is what is compiled.

`HYPOTHESIS_PROFILE=soak` tries many new ones, `HYPOTHESIS_PROFILE=few` is for slow interpreters.
"""

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("STENTOR_WAIT", "1")
collect_ignore = ["cluster", "programs"]  # what tests and targets run, and no tests

settings.register_profile(
    "ci",
    derandomize=True,
    stateful_step_count=25,
    deadline=None,
    database=None,
    print_blob=True,
)
settings.register_profile("few", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "soak",
    max_examples=10_000,
    stateful_step_count=200,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
