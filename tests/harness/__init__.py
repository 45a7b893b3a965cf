"""Starts the real servers for tests, and services as processes; gives tests a clock of their own."""

from deploy.local.servers.nats import NatsServer
from deploy.local.servers.postgres import PostgresServer
from tests.harness.clock import FakeClock
from tests.harness.processes import ServiceProcess
from tests.harness.waiting import eventually

__all__ = ["FakeClock", "NatsServer", "PostgresServer", "ServiceProcess", "eventually"]
