"""Clients of a service that `stentor serve` runs (docs/service.md): `Client` and `AsyncClient`."""

from stentor.service.client import AsyncClient, Client, Delivery, Gap, Rejected

__all__ = ["AsyncClient", "Client", "Delivery", "Gap", "Rejected"]
