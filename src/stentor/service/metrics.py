"""What Prometheus is told at `/metrics`: read from the hub when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from stentor.service.hub import Hub
from stentor.service.links.book import LinkBook

_COUNTS = {
    "events": "Events that were published",
    "rejected": "Records that were refused",
    "deliveries": "Deliveries that were put into clients' queues",
    "commits": "Transactions",
}

_LINK_GAUGES = {
    "up": "Whether the link is connected",
    "saved_events": "Events that did not have to go over the link",
    "unwanted_events": "Events that came over the link for nothing",
    "refused_messages": "Messages that came over the link and were refused",
    "queued_messages": "Messages that the neighbour has not kept yet",
    "queued_bytes": "Their bytes",
    "conflicts": "Attributes that both brokers use differently",
}


class ServiceMetrics:
    """The metrics of one service."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self.requests = Counter(
            "stentor_requests_total",
            "HTTP requests and WebSocket connections",
            ["kind", "status"],
            registry=self._registry,
        )

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        found: bytes = generate_latest(self._registry)
        return found

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        core, owner = self._hub.owner.core, self._hub.owner
        if core is None:
            return
        for name, help_text in _COUNTS.items():
            yield CounterMetricFamily(f"stentor_{name}", help_text, value=core.counts[name])
        queues = list(core.store.queues.values())
        gauges = {
            "subscriptions": (
                "Subscriptions",
                sum(len(owned) for owned in list(core.store.owned.values())),
            ),
            "live_events": ("Live events", len(core.broker.tables.events)),
            "connections": ("Open connections", sum(self._hub.connections.values())),
            "inbox": ("Records that wait for their turn", owner.waiting),
            "queued_deliveries": (
                "Deliveries that wait for an acknowledgement",
                sum(queue.queued for queue in queues),
            ),
            "queued_bytes": ("Their bytes", sum(queue.bytes for queue in queues)),
            "longest_queue": (
                "Deliveries in the longest queue",
                max((queue.queued for queue in queues), default=0),
            ),
            "clients": ("Clients with a queue", len(queues)),
            "store_failed": ("Whether nothing can be kept now", int(bool(owner.failure))),
            "uptime_seconds": ("Seconds since the start", round(self._hub.uptime, 1)),
        }
        for name, (help_text, value) in gauges.items():
            yield GaugeMetricFamily(f"stentor_{name}", help_text, value=value)
        yield from self._links(core.links)
        latencies = sorted(owner.latencies.copy())
        if latencies:
            family = GaugeMetricFamily(
                "stentor_commit_latency_seconds",
                "From a record's arrival to its commit, of the last ones",
                labels=["quantile"],
            )
            for share in (0.5, 0.99):
                position = min(len(latencies) - 1, int(len(latencies) * share))
                family.add_metric([str(share)], latencies[position])
            yield family

    def _links(self, book: LinkBook) -> Iterator[Metric]:
        carried = CounterMetricFamily(
            "stentor_link_messages", "Messages that went over a link", labels=["broker", "kind"]
        )
        gauges = {
            name: GaugeMetricFamily(f"stentor_link_{name}", text, labels=["broker"])
            for name, text in _LINK_GAUGES.items()
        }
        for name, account in list(book.accounts.items()):
            for kind, count in list(account.carried.items()):
                carried.add_metric([name, kind], count)
            queue = book.store.link_queues.get(name)
            values = {
                "up": int(account.session is not None),
                "saved_events": account.saved,
                "unwanted_events": account.unwanted,
                "refused_messages": account.refused,
                "queued_messages": 0 if queue is None else queue.queued,
                "queued_bytes": 0 if queue is None else queue.bytes,
                "conflicts": len(account.conflicts),
            }
            for gauge, value in values.items():
                gauges[gauge].add_metric([name], value)
        yield carried
        yield from gauges.values()
