"""Manifests, the truth about a pipeline, and what follows from them."""
