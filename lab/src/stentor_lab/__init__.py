"""Stentor's laboratory: workloads, benchmarks, what papers compare with, a simulated overlay."""

from pathlib import Path

from stentor._jit import keep_kernels_of

keep_kernels_of(Path(__file__).parent)
