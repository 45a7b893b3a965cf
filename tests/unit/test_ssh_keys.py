"""Key pairs of tasks that are reached over SSH."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)

from libs.cluster.config import SshConfig
from libs.ssh_keys import new_key_pair


@pytest.mark.parametrize(
    "settings", [SshConfig(), SshConfig(key_type="ECDSA"), SshConfig(key_type="RSA", rsa_key_size=1024)]
)
def test_key_pairs_belong_together(settings: SshConfig) -> None:
    pair = new_key_pair(settings)
    load = load_ssh_private_key if "OPENSSH" in pair.private else load_pem_private_key
    private = load(pair.private.encode(), None)
    public = load_ssh_public_key(pair.public.encode())
    assert (
        private.public_key().public_numbers() == public.public_numbers()
        if settings.key_type != "ED25519"
        else (private.public_key().public_bytes_raw() == public.public_bytes_raw())
    )
    assert pair.public.endswith("\n")
