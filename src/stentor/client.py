"""Clients of a service that `stentor serve` runs (docs/service.md): `Client` and `AsyncClient`."""

from stentor.service.client import (
    AsyncClient,
    Client,
    ReceivedDelivery,
    ReceivedGap,
    RejectedRecord,
)

__all__ = ["AsyncClient", "Client", "ReceivedDelivery", "ReceivedGap", "RejectedRecord"]
