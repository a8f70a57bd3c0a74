"""An overlay of brokers in one process: what each link carries for a workload."""
