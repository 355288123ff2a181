"""Reads weights from an `.npz` archive, whose headers are checked before decompression.

An archive may come from an untrusted source, and a small one can declare terabytes.
Nothing in it is executed.
"""

import io
import math
import os
import struct
import zipfile
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

import numpy as np

from azjax.remote import Directory, open_regular

SUFFIX = ".npy"
DTYPES = ("float16", "float32")  # of weights on disk
MAX_HEADER_BYTES = 4096  # for an array's header and its entry in the archive
_MAGIC_BYTES = 12  # maximum before the header
_END = struct.Struct("<4s8xLLH")  # last record of an archive
_LOCATOR_BYTES = 20  # record before it, needed by archives of 2 GiB only
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class MismatchError(ValueError):
    """The archive is valid, but its arrays are not the expected ones."""


class _Member(NamedTuple):
    shape: tuple[int, ...]
    is_fortran: bool  # whether its first axis varies fastest
    dtype: np.dtype
    header_bytes: int
    num_bytes: int  # without its header


def read_weights(
    path: Directory, expected: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """Reads an archive of arrays.

    Args:
        path: path of the archive.
        expected: shapes of the arrays by name.

    Returns:
        Float32 arrays by name.

    Raises:
        MismatchError: names or shapes of the arrays differ.
        ValueError, zipfile.BadZipFile, OSError and others: the archive is damaged.
    """
    num_values = sum(math.prod(shape) for shape in expected.values())
    # Incompressible arrays become slightly larger.
    entry_bytes = 2 * MAX_HEADER_BYTES * (len(expected) + 1)
    with open_regular(path, 5 * num_values + entry_bytes) as file:
        _check_directory(file, entry_bytes)
        with zipfile.ZipFile(file) as archive:
            members = _members(archive)
            _check(members, expected)
            return {name: _read(archive, name, members[name]) for name in expected}


def _check_directory(file: BinaryIO, most: int) -> None:
    """Checks the size of the list of members, all of which `zipfile` reads."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LOCATOR_BYTES - _END.size))
    tail = file.read(_LOCATOR_BYTES + _END.size)
    if len(tail) < _END.size:
        raise ValueError("it is not an archive")
    signature, num_bytes, _, comment_bytes = _END.unpack(tail[-_END.size :])
    # `zipfile` would read the list from another place.
    has_locator = tail.startswith(b"PK\x06\x07") and size < 2**31
    if signature != b"PK\x05\x06" or comment_bytes or has_locator:
        raise ValueError("its end is not that of an archive of arrays")
    if num_bytes > most:
        raise ValueError(f"the list of its arrays has more than {most} bytes")


def _members(archive: zipfile.ZipFile) -> dict[str, _Member]:
    """Reads the headers of all arrays."""
    members = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(SUFFIX)
        if name == info.filename or name in members:
            raise ValueError(f"{info.filename[:80]!r} is not an array or is repeated")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name[:80]!r} is not compressed by deflate")
        with archive.open(info) as file:
            # NumPy checks a header's length only after reading it.
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
            raise ValueError(f"the size of {name} does not match its shape")


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
    check_finite(name, values)
    return values


def check_finite(name: str, values: np.ndarray) -> None:
    """Checks the values of an array."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has values that are not finite")
