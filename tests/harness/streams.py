"""An empty NATS server without a restart."""

from __future__ import annotations

import nats


async def wipe(url: str) -> None:
    """Delete every stream and bucket, with their consumers."""
    client = await nats.connect(url)
    try:
        jetstream = client.jetstream()
        for info in await jetstream.streams_info():
            assert info.config.name is not None
            await jetstream.delete_stream(info.config.name)
    finally:
        await client.close()
