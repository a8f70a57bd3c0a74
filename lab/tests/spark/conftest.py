"""Without PySpark or Java these tests are skipped, as the product's are."""

from tests.spark.conftest import pytest_collect_file

__all__ = ["pytest_collect_file"]
