"""Settings that every task container of a pool gets about the control plane."""

from __future__ import annotations

from msgspec import Struct


class TaskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    master_url: str = "http://127.0.0.1:8080"
    """Base URL of the api as tasks reach it."""
    master_cert_file: str | None = None
    """PEM file whose certificates tasks trust besides the usual ones; ``noverify`` makes them trust anybody."""
    master_cert_name: str | None = None
    """Name in the master's certificate, where it differs from the host of ``master_url``."""
    log_intake_url: str | None = None
    """Base URL of the log intake as tasks reach it; None leaves what tasks print on this machine."""
    gloo_port_range: str | None = None
    """Ports of Gloo where the cluster configuration says nothing, as ``first:last``."""
    network_interface: str | None = None
    """Interface for traffic between the pods of a trial, for launchers that do not find it themselves."""
