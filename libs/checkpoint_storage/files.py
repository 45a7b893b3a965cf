"""Files below a name in a bucket: which there are, what is in them, and whether one can be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import obstore
from msgspec import Struct

from libs.checkpoint_storage.endpoints import field_of, refusal
from libs.checkpoint_storage.failures import told_plainly
from libs.checkpoint_storage.opening import Bucket, open_bucket
from libs.checkpoint_storage.places import describe
from libs.errors import FailedPrecondition, ResoluteError, Unavailable
from libs.outbound.forward_proxy import Passage

_PIECE_BYTES: Final = 1024 * 1024
_LISTED_AT_ONCE: Final = 1000


class StoredFile(Struct, frozen=True, kw_only=True):
    """``path`` is relative to the name that was listed. A directory is there as a file without bytes, or not at all."""

    path: str
    size_bytes: int
    changed_at: datetime
    is_directory: bool
    etag: str | None


class BucketFiles:
    """The files below ``name``, such as the UUID of a checkpoint. Every call waits for the storage."""

    def __init__(
        self,
        storage: Mapping[str, Any],
        name: str,
        *,
        home: Mapping[str, Any] | None = None,
        passage: Passage | None = None,
    ) -> None:
        """``passage`` is the way to a storage that a user has named; None connects to whatever it is."""
        self._place = describe(storage)
        self._bucket: Bucket = open_bucket(storage, home, proxy_url=passage.url if passage else None)
        self._field = field_of(storage)
        self._passage = passage
        self._name = name

    def listed(self) -> Iterator[StoredFile]:
        """In the order of their names, however many. Raises Unavailable and FailedPrecondition, as all of this does."""
        with self._told_plainly():
            for portion in obstore.list(self._bucket, self._name, chunk_size=_LISTED_AT_ONCE):
                for found in portion:
                    yield StoredFile(
                        path=found["path"].removeprefix(f"{self._name}/"),
                        size_bytes=found["size"],
                        changed_at=found["last_modified"],
                        is_directory=found["size"] == 0 and not self._is_file(found["path"]),
                        etag=found["e_tag"],
                    )

    def read(self, file: StoredFile) -> Iterator[bytes]:
        """The bytes in pieces of about a MiB, all of one version of the file; a lost connection is taken up again.

        Raises Unavailable, too, when the file is gone or was replaced since it was listed.
        """
        path = f"{self._name}/{file.path}"
        try:
            with self._told_plainly():
                found = obstore.get(self._bucket, path, options={"if_match": file.etag} if file.etag else None)
                for piece in found.stream(min_chunk_size=_PIECE_BYTES):
                    yield bytes(piece)
        except FileNotFoundError as error:
            raise Unavailable(f"{path} was deleted from checkpoint storage {self._place} meanwhile") from error

    def try_to_write(self) -> None:
        """Write, read and delete a small file named ``name``. Raises Unavailable and FailedPrecondition."""
        content = self._name.encode()
        try:
            with self._told_plainly():
                obstore.put(self._bucket, self._name, content)
                try:
                    read = bytes(obstore.get(self._bucket, self._name).bytes())
                finally:
                    obstore.delete(self._bucket, self._name)
        except FileNotFoundError as error:
            raise FailedPrecondition(f"checkpoint storage {self._place} does not exist") from error
        if read != content:
            raise Unavailable(f"checkpoint storage {self._place} does not give back what was written")

    @contextmanager
    def _told_plainly(self) -> Iterator[None]:
        """As ``told_plainly``; a passage knows better why nothing was reached."""
        try:
            with told_plainly(self._place):
                yield
        except (ResoluteError, FileNotFoundError) as error:
            if self._passage is None or self._passage.refused is None:
                raise
            raise FailedPrecondition(refusal(self._field, self._passage.refused)) from error

    def _is_file(self, path: str) -> bool:
        """The library leaves out the slash that ends the name of a directory; without it, there is nothing."""
        try:
            obstore.head(self._bucket, path)
        except FileNotFoundError:
            return False
        return True
