"""Files in model repositories of the Hugging Face Hub; needs the extra `hub`.

The library huggingface_hub finds the server (`HF_ENDPOINT`) and the token (`HF_TOKEN`,
or that of `hf auth login`).
"""

import contextlib
import errno
import importlib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from azjax.files import store_problem

_OWN_FILES = {".gitattributes"}  # which the Hub adds to every repository
_SHOWN_FILES = 3
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def check_repository(name: str) -> None:
    """Checks the name of a repository."""
    utils = _library("huggingface_hub.utils")
    with contextlib.suppress(utils.HFValidationError):
        utils.validate_repo_id(name)
        if _NAME.fullmatch(name):
            return
    raise ValueError(
        "a repository of the Hugging Face Hub must be USER/NAME, each of letters, "
        f"digits and single - _ . within: {name[:100]!r}"
    )


def upload(
    name: str, files: Mapping[str, bytes], *, kind: str, private: bool, message: str
) -> str:
    """Writes files to a repository in one commit; creates the repository if missing.

    Args:
        name: USER/NAME of the repository.
        files: contents by file name.
        kind: the file without which a repository with other files is not changed.
        private: whether the repository must be private.
        message: of the commit.

    Returns:
        The repository's address.

    Raises:
        ValueError: the name is invalid, there is no token, or it does not allow this;
            the repository has other content, or is public and must be private.
        OSError: the Hub cannot be reached, or refuses the files.
    """
    check_repository(name)
    library = _library("huggingface_hub")
    with _errors(name):
        token = library.get_token()
    if token is None:
        raise ValueError(
            "the Hugging Face Hub needs a token to write: set HF_TOKEN, or log in with "
            "hf auth login"
        )
    with _errors(name):
        api = library.HfApi(token=token, library_name="azjax")
        address = api.create_repo(name, private=private or None, exist_ok=True)
        about = api.model_info(name)
    found = {file.rfilename for file in about.siblings or ()} - _OWN_FILES
    if found and kind not in found:
        raise ValueError(
            f"the repository {name} has other content ({_shown(found)}) and no {kind}; "
            "nothing was changed: name a new repository"
        )
    if private and not about.private:
        raise ValueError(f"the repository {name} exists and is not private")
    with _errors(name):
        operations = [
            library.CommitOperationAdd(path_in_repo=path, path_or_fileobj=content)
            for path, content in files.items()
        ]
        api.create_commit(
            name, operations, commit_message=message, parent_commit=about.sha
        )
    return str(address)


def download(
    name: str,
    limits: Mapping[str, int],
    directory: Path,
    *,
    kind: str,
    revision: str | None = None,
) -> dict[str, Path]:
    """Downloads files of a repository.

    Args:
        name: USER/NAME of the repository.
        limits: maximum bytes of the files by file name.
        directory: where the files are stored.
        kind: the file that the repository must have; others may be missing.
        revision: a branch, a tag or a commit; by default the newest commit.

    Returns:
        Paths of the downloaded files by file name.

    Raises:
        ValueError: the name is invalid; the repository, the revision or the file `kind`
            is missing or cannot be read with the token; or a file is too large.
        OSError: the Hub cannot be reached.
    """
    check_repository(name)
    library = _library("huggingface_hub")
    with _errors(name, revision):
        api = library.HfApi(library_name="azjax")
        about = api.model_info(name, revision=revision, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in about.siblings or ()}
    if kind not in sizes:
        raise ValueError(
            f"the repository {name} has no {kind}, so it is not a player of azjax; its "
            f"files: {_shown(sizes) or 'none'}"
        )
    paths = {}
    for file in limits.keys() & sizes.keys():
        if sizes[file] > limits[file]:
            raise ValueError(
                f"{file} in {name} has {sizes[file]} bytes; at most {limits[file]} are "
                "loaded"
            )
        with _errors(name, revision):
            path = api.hf_hub_download(
                name, file, revision=about.sha, cache_dir=directory
            )
        paths[file] = Path(path)
    return paths


def _shown(names: Collection[str]) -> str:
    """Returns the first names, sorted."""
    first = ", ".join(repr(name[:60]) for name in sorted(names)[:_SHOWN_FILES])
    return first + (", ..." if len(names) > _SHOWN_FILES else "")


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        library = name.partition(".")[0]
        raise ValueError(
            f"{library} is not installed: pip install 'azjax[hub]'"
        ) from None


@contextlib.contextmanager
def _errors(name: str, revision: str | None = None) -> Iterator[None]:
    """Converts errors of huggingface_hub to one-line ValueErrors and OSErrors."""
    errors = _library("huggingface_hub.errors")
    try:
        yield
    except errors.RevisionNotFoundError:
        raise ValueError(
            f"the repository {name} has no revision {str(revision)[:80]!r}"
        ) from None
    except errors.GatedRepoError:
        raise ValueError(
            f"the owner of the repository {name} must first grant access to it"
        ) from None
    except errors.RepositoryNotFoundError:
        raise ValueError(
            f"there is no repository {name}, or the token does not allow to read it"
        ) from None
    except Exception as error:
        response = getattr(error, "response", None)
        if getattr(response, "status_code", None) in (401, 403):
            reason = getattr(error, "server_message", None) or "no permission"
            raise ValueError(
                f"the token does not allow this in the repository {name}: "
                f"{' '.join(reason.split())[:200]}"
            ) from None
        # Others come from a failed upload, or from an answer that is not the Hub's.
        problem = store_problem(error) or f"{error!r} {error.__cause__ or ''}"
        text = " ".join(problem.split())[:300]
        raise OSError(errno.EIO, text, f"Hugging Face Hub, {name}") from error
