"""Adds a built version of the documentation to the published site.

    python docs/ext/published_site.py SITE BUILT VERSION ROOT

`SITE` holds a directory for each version, `dev` and the releases, and `versions.json`,
which the version menu of every page reads. Its start page leads to the newest release,
or to `dev` while there is none.
"""

import json
import re
import shutil
import sys
from pathlib import Path

DEVELOPMENT = "dev"
RELEASE = re.compile(r"\d+(\.\d+)*")


def add_version(site: Path, built: Path, version: str, root: str) -> None:
    """Writes a version, in place of an older build of the same one.

    Args:
        site: the published site; made if it does not exist.
        built: output of `sphinx-build`.
        version: `dev`, or a release such as `0.1.0`.
        root: path of the site on its server, such as `/azjax/`.

    Raises:
        ValueError: the version has another form, or `built` is no built site.
    """
    if version != DEVELOPMENT and not RELEASE.fullmatch(version):
        raise ValueError(f"the version must be dev or numbers with dots: {version!r}")
    if not (built / "index.html").is_file():
        raise ValueError(f"{built} is not a built site: it has no index.html")
    directory = site / version
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(built, directory, ignore=shutil.ignore_patterns(".doctrees"))
    versions = _versions(site)
    entries = [
        {
            "name": f"{name} (newest)" if name == versions[0] else name,
            "version": name,
            "url": f"{root}{name}/",
            "preferred": name == versions[0],
        }
        for name in versions
    ]
    (site / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    (site / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>azjax</title>\n'
        f'<meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
        f'<a href="{versions[0]}/">azjax</a>\n'
    )
    (site / ".nojekyll").touch()  # GitHub Pages serves `_static` only with this file


def _versions(site: Path) -> list[str]:
    """Returns the releases, the newest first, and then `dev` if it is there."""
    names = [path.name for path in site.iterdir() if (path / "index.html").is_file()]
    releases = [name for name in names if RELEASE.fullmatch(name)]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")])
    return releases[::-1] + [name for name in names if name == DEVELOPMENT]


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    try:
        add_version(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    except ValueError as error:
        sys.exit(str(error))
