"""Weights in an `.npz` archive, compared with what is expected before it is inflated.

An archive may have been copied from anywhere, and one of a few kilobytes can declare
terabytes. Its headers are read first; nothing in it is executed.
"""

import io
import math
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from azjax.remote import Directory, open_object

SUFFIX = ".npy"
DTYPES = ("float16", "float32")  # of weights on disk
MAX_HEADER_BYTES = 4096  # of an array's header, and of its entry in the archive
_MAGIC_BYTES = 12  # before the header itself, at most
_END = struct.Struct("<4s8xLLH")  # the last record of an archive
_LOCATOR_BYTES = 20  # of the record before it, which only archives of 2 GiB need
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class MismatchError(ValueError):
    """An archive is whole, but holds other arrays than expected."""


class _Member(NamedTuple):
    shape: tuple[int, ...]
    is_fortran: bool  # whether its first axis varies fastest
    dtype: np.dtype
    header_bytes: int
    num_bytes: int  # without its header


def open_regular(path: Directory, most: int) -> BinaryIO:
    """Opens a regular file for reading; a link to one is followed. That of an object
    store is read as a whole.

    Raises:
        OSError: there is none, or it has more than `most` bytes.
    """
    if not isinstance(path, Path):
        return open_object(path, most)
    # Nothing waits for the other end of a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode) and about.st_size <= most:
        return file
    file.close()
    is_regular = stat.S_ISREG(about.st_mode)
    problem = f"has more than {most} bytes" if is_regular else "is no regular file"
    raise OSError(f"{path.name} {problem}")


def read_weights(
    path: Directory, expected: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """Reads an archive of arrays.

    Args:
        path: of the archive.
        expected: the shapes of the arrays by their names.

    Returns:
        The arrays by their names, float32.

    Raises:
        MismatchError: there are other arrays, or arrays of other shapes.
        ValueError, zipfile.BadZipFile, OSError and others: the archive is damaged.
    """
    num_values = sum(math.prod(shape) for shape in expected.values())
    # An array that cannot be compressed becomes a little larger.
    entry_bytes = 2 * MAX_HEADER_BYTES * (len(expected) + 1)
    with open_regular(path, 5 * num_values + entry_bytes) as file:
        _check_directory(file, entry_bytes)
        with zipfile.ZipFile(file) as archive:
            members = _members(archive)
            _check(members, expected)
            return {name: _read(archive, name, members[name]) for name in expected}


def _check_directory(file: BinaryIO, most: int) -> None:
    """Checks how long the list of an archive's members is: `zipfile` reads all of it.

    Raises:
        ValueError: it has more than `most` bytes, or there is none.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LOCATOR_BYTES - _END.size))
    tail = file.read(_LOCATOR_BYTES + _END.size)
    if len(tail) < _END.size:
        raise ValueError("it is no archive")
    signature, num_bytes, _, comment_bytes = _END.unpack(tail[-_END.size :])
    # `zipfile` would look elsewhere for the list.
    has_locator = tail.startswith(b"PK\x06\x07") and size < 2**31
    if signature != b"PK\x05\x06" or comment_bytes or has_locator:
        raise ValueError("it does not end as an archive of arrays does")
    if num_bytes > most:
        raise ValueError(f"the list of its arrays has more than {most} bytes")


def _members(archive: zipfile.ZipFile) -> dict[str, _Member]:
    """Returns what the headers say of all arrays."""
    members = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(SUFFIX)
        if name == info.filename or name in members:
            raise ValueError(f"{info.filename[:80]!r} is no array or is there twice")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name[:80]!r} is compressed in another way than deflate")
        with archive.open(info) as file:
            # NumPy would read all of a header before it looks how long it is.
            head = io.BytesIO(file.read(_MAGIC_BYTES + MAX_HEADER_BYTES))
        version = np.lib.format.read_magic(head)
        if version not in _HEADERS:
            raise ValueError(f"{name[:80]!r} has a header of version {version}")
        described = _HEADERS[version](head, MAX_HEADER_BYTES)
        header_bytes = head.tell()
        num_bytes = info.file_size - header_bytes
        members[name] = _Member(*described, header_bytes, num_bytes)
    return members


def _check(
    members: Mapping[str, _Member], expected: Mapping[str, tuple[int, ...]]
) -> None:
    for name in sorted(expected.keys() | members.keys()):
        member, shape = members.get(name), expected.get(name)
        found = member.shape if member else None
        if found != shape or member is None:
            raise MismatchError(f"{name[:80]} is {str(found)[:80]}, expected {shape}")
        if member.dtype not in map(np.dtype, DTYPES):
            raise MismatchError(
                f"{name} is of {member.dtype}, expected {' or '.join(DTYPES)}"
            )
        if member.num_bytes != math.prod(member.shape) * member.dtype.itemsize:
            raise ValueError(f"{name} declares another size than its shape has")


def _read(archive: zipfile.ZipFile, name: str, member: _Member) -> np.ndarray:
    with archive.open(f"{name}{SUFFIX}") as file:
        content = file.read(member.header_bytes + member.num_bytes)
    values = np.ndarray(
        member.shape,
        member.dtype,
        content,
        offset=member.header_bytes,
        order="F" if member.is_fortran else "C",
    ).astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has values that are no finite numbers")
    return values
