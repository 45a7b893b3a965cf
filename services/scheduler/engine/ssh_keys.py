"""The key pair by which the pods of one experiment reach one another (spec/harness-protocol.md 5)."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from libs.cluster.config import SshConfig


def generate_keys(config: SshConfig) -> tuple[str, str]:
    """A private key in the format that goes with its type, and the public key as a line of authorized_keys."""
    match config.key_type:
        case "ED25519":
            key: ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
            key = ed25519.Ed25519PrivateKey.generate()
            layout = PrivateFormat.OpenSSH
        case "RSA":
            key = rsa.generate_private_key(public_exponent=65537, key_size=config.rsa_key_size)
            layout = PrivateFormat.TraditionalOpenSSL
        case "ECDSA":
            key = ec.generate_private_key(ec.SECP256R1())
            layout = PrivateFormat.TraditionalOpenSSL
    private = key.private_bytes(Encoding.PEM, layout, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return private, f"{public}\n"
