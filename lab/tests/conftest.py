"""As the product's tests: Hypothesis tries the same examples each time."""

import tests.conftest  # noqa: F401

collect_ignore = ["programs"]
