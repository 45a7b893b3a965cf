"""The certificate of an api that serves HTTPS: which it is, and how those on this machine and its tasks trust it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from deploy.local.failure import CannotStart
from deploy.local.layout import Options
from libs.cluster.loading import read_cluster_config
from libs.cluster.refusals import in_words
from libs.errors import InvalidRequest


def of_api(cluster_file: Path) -> tuple[str | None, str | None]:
    """Paths of the certificate that the cluster configuration names, and of its authorities. Raises CannotStart."""
    if not cluster_file.exists():
        return None, None  # it is written later, and serves HTTP
    try:
        tls = read_cluster_config(cluster_file)[0].security.tls
    except InvalidRequest as error:
        raise CannotStart(in_words(cluster_file, str(error))) from error
    return tls.cert or None, tls.ca or None


def for_tasks(options: Options) -> dict[str, Any]:
    """Settings of a launcher whose tasks reach the api by address, whatever names its certificate has."""
    if options.certificate is None:
        return {}
    return {"master_cert_file": options.trusted, "master_cert_name": _first_name(Path(options.certificate))}


def for_clients(options: Options) -> dict[str, str]:
    """The environment of a client that trusts the api and reaches it by address. Raises CannotStart."""
    if options.certificate is None or options.trusted is None:
        return {}
    name = _first_name(Path(options.certificate))
    return {"DET_MASTER_CERT_FILE": options.trusted, **({"DET_MASTER_CERT_NAME": name} if name else {})}


def trust(options: Options) -> ssl.SSLContext | None:
    """For requests to the api from its own machine: its certificate, under any name. None for plain HTTP."""
    if options.trusted is None:
        return None
    try:
        context = ssl.create_default_context(cafile=options.trusted)
    except OSError as error:
        raise CannotStart(f"security.tls: {options.trusted}: {error}") from error
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # of a certificate from an authority, too
    return context


def _first_name(certificate: Path) -> str | None:
    """The first DNS name, else the first address, that a certificate is for; None when it has neither.

    Source: docs/reference/kubernetes.md 3.6, DET_MASTER_CERT_NAME. Raises CannotStart.
    """
    from cryptography import x509  # noqa: PLC0415  # costs time that those without a certificate need not pay

    try:
        leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    except (OSError, ValueError) as error:
        raise CannotStart(f"security.tls.cert {certificate}: {error}") from error
    found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return found[0] if found else None
