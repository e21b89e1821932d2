"""Zip files (weights, checkpoints, npz) that carry a checksum of themselves, in the comment at their end.

Every zip reader opens them as before. Neither torch nor NumPy looks at all bytes of what they read: a flipped one would
be other weights without a word.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

_MAGIC = b"rfsum1"
_SIZE = len(_MAGIC) + 16
_END = b"PK\x05\x06"  # of the last record, 22 bytes without a comment


class Damaged(ValueError):
    """A file that is not what was written; the message names it."""


def seal(content: bytes) -> bytes:
    """A zip file with the checksum of its bytes as its comment.

    Example:
        >>> import io, zipfile
        >>> buffer = io.BytesIO()
        >>> with zipfile.ZipFile(buffer, "w") as file:
        ...     file.writestr("a", "text")
        >>> len(seal(buffer.getvalue())) - len(buffer.getvalue())
        22
    """
    if content[-22:-18] != _END or content[-2:] != b"\0\0":
        raise ValueError("content must be a zip file without a comment")
    content = content[:-2] + _SIZE.to_bytes(2, "little")
    return content + _MAGIC + _checksum(content)


def read_sealed(path: Path) -> bytes:
    """The bytes of a file that `seal` made, checked; those of an older file, which has no checksum, as they are.

    Raises:
        Damaged: It is missing, empty, or not what was written.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror or error}") from None
    body, end = content[:-_SIZE], content[-_SIZE:]
    if end.startswith(_MAGIC):
        if _checksum(body) != end[len(_MAGIC) :]:
            raise Damaged(f"{path} is damaged: its checksum does not fit")
    elif content[-22:-18] != _END and body[-22:-18] != _END:
        raise Damaged(f"{path} is {'damaged or cut: it has no end' if content else 'empty'}")
    return content


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
