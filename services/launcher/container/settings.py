"""Settings that every task container of a pool gets about the control plane."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NO_VERIFICATION: Final = "noverify"
"""In place of a file: trust whoever answers."""


class TaskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    master_url: str = "http://127.0.0.1:8080"
    """Base URL of the api as tasks reach it."""
    master_cert_file: str | None = None
    """PEM file whose certificates tasks trust besides the usual ones; ``noverify`` makes them trust anybody."""
    master_ca_file: str | None = None
    """PEM file of the authorities that sign the master's certificate. Where it exists, tasks trust it in place of
    ``master_cert_file``, so that a renewed certificate changes nothing for them. Read at each launch."""
    additional_ca_file: str | None = None
    """PEM file of authorities that tasks trust as well, for the time in which the authority changes. Read at each
    launch."""
    master_cert_name: str | None = None
    """Name in the master's certificate, where it differs from the host of ``master_url``."""
    log_intake_url: str | None = None
    """Base URL of the log intake as tasks reach it; None leaves what tasks print on this machine."""
    gloo_port_range: str | None = None
    """Ports of Gloo where the cluster configuration says nothing, as ``first:last``."""
    network_interface: str | None = None
    """Interface for traffic between the pods of a trial, for launchers that do not find it themselves."""

    @property
    def has_trust(self) -> bool:
        """Whether tasks are told whom to trust."""
        return any((self.master_cert_file, self.master_ca_file, self.additional_ca_file))
