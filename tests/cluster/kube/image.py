"""Container images from root file systems, in the format of `docker save`: Docker and containerd load it.

Run: python image.py OUT.tar [--env K=V]... [--cmd ARG]... [--entrypoint ARG]... NAME=LAYER.tar[,LAYER.tar]...
"""

import argparse
import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def digest(layer: Path) -> str:
    with layer.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("out", type=Path)
    args.add_argument("--env", action="append", default=[])
    args.add_argument("--cmd", action="append", default=[])
    args.add_argument("--entrypoint", action="append", default=[])
    args.add_argument("images", nargs="+", metavar="NAME=LAYER.tar[,LAYER.tar]")
    a = args.parse_args()
    wanted = {name: [Path(p) for p in paths.split(",")] for name, paths in (i.split("=", 1) for i in a.images)}
    digests = {layer: digest(layer) for layers in wanted.values() for layer in layers}
    manifest = []
    with tarfile.open(a.out, "w") as out:

        def add(name: str, content: bytes) -> None:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))

        for layer, found in digests.items():
            out.add(layer, f"{found}/layer.tar")
        for name, layers in wanted.items():
            config = json.dumps(
                {
                    "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
                    "os": "linux",
                    "config": {"Env": a.env, "Cmd": a.cmd, "Entrypoint": a.entrypoint},
                    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digests[layer]}" for layer in layers]},
                }
            ).encode()
            file = f"{hashlib.sha256(config).hexdigest()}.json"
            add(file, config)
            manifest.append(
                {"Config": file, "RepoTags": [name], "Layers": [f"{digests[layer]}/layer.tar" for layer in layers]}
            )
        add("manifest.json", json.dumps(manifest).encode())


main()
