"""Clients of a service that `stentor serve` runs (docs/service.md): `Client` and `AsyncClient`."""

from stentor.service.client import AsyncClient
from stentor.service.client_frames import ReceivedDelivery, ReceivedGap, RejectedRecord
from stentor.service.client_thread import Client

__all__ = ["AsyncClient", "Client", "ReceivedDelivery", "ReceivedGap", "RejectedRecord"]
