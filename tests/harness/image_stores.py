"""Images that the node of this machine has: in the containerd of a cluster of ``tests/cluster``, or in Docker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import pytest

MANIFEST_TYPE: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG_TYPE: Final = "application/vnd.docker.container.image.v1+json"
_LAYER_TYPE: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"


class ImageStore(Protocol):
    def manifest(self, image: str) -> bytes:
        """Of the type MANIFEST_TYPE."""
        ...

    def names(self) -> list[str]: ...

    def load(self, archive: Path) -> None:
        """The images of an archive in the format of ``docker save``."""
        ...

    def forget(self, names: Sequence[str]) -> None: ...


class Containerd:
    def __init__(self, socket: Path) -> None:
        self._ctr = ("ctr", "--address", str(socket), "--namespace", "k8s.io")

    def manifest(self, image: str) -> bytes:
        [line] = _output(*self._ctr, "images", "list", f"name=={image}", f"name==docker.io/{image}").splitlines()[1:]
        return _output(*self._ctr, "content", "get", line.split()[2]).encode()

    def names(self) -> list[str]:
        return _output(*self._ctr, "images", "list", "--quiet").splitlines()

    def load(self, archive: Path) -> None:
        _output(*self._ctr, "images", "import", str(archive), timeout_s=300)

    def forget(self, names: Sequence[str]) -> None:
        _output(*self._ctr, "images", "remove", *names)


class Docker:
    def manifest(self, image: str) -> bytes:
        [found] = json.loads(_output("docker", "image", "inspect", image))
        layers = [{"mediaType": _LAYER_TYPE, "size": 1, "digest": digest} for digest in found["RootFS"]["Layers"]]
        config = {"mediaType": _CONFIG_TYPE, "size": 1, "digest": found["Id"]}
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": layers}
        return json.dumps(manifest).encode()

    def names(self) -> list[str]:
        return _output("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}").splitlines()

    def load(self, archive: Path) -> None:
        _output("docker", "load", "--quiet", "--input", str(archive), timeout_s=300)

    def forget(self, names: Sequence[str]) -> None:
        _output("docker", "image", "rm", "--force", *names)


def find_image_store() -> ImageStore:
    """The store that the node pulls into. Skips where the node is not on this machine."""
    socket = Path(os.environ.get("KUBECONFIG", "")).parent / "containerd" / "socket"
    if socket.is_socket():
        return Containerd(socket)
    if shutil.which("docker") and not subprocess.run(["docker", "info"], check=False, capture_output=True).returncode:
        return Docker()
    pytest.skip("needs a node on this machine: KUBECONFIG=$(tests/cluster/kube/cluster up --kubelet)")


def _output(*command: str, timeout_s: float = 60) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout_s).stdout
