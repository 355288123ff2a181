"""A fake Hugging Face Hub with model repositories in memory.

It implements the part of the HTTP interface that huggingface_hub uses in azjax.
"""

import base64
import contextlib
import dataclasses
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_valid"
USER = "ann"


@dataclasses.dataclass
class Repository:
    """A repository: its commits, the newest last, as contents by file name."""

    private: bool = False
    commits: list[dict[str, bytes]] = dataclasses.field(
        default_factory=lambda: [{".gitattributes": b""}]
    )
    messages: list[str] = dataclasses.field(default_factory=lambda: ["initial commit"])

    @property
    def files(self) -> dict[str, bytes]:
        """Returns the files of the newest commit."""
        return self.commits[-1]

    def commit(self, files: dict[str, bytes], message: str = "") -> None:
        """Adds a commit that writes files."""
        self.commits.append(self.files | files)
        self.messages.append(message)

    def find(self, revision: str) -> int | None:
        """Returns the number of a commit."""
        numbers = range(len(self.commits))
        if revision == "main":
            return numbers[-1]
        return next((n for n in numbers if sha(n) == revision), None)


def sha(number: int) -> str:
    """Returns the hash of a repository's commit."""
    return f"{number:040x}"


class FakeHub:
    """A server; a context manager that stops it.

    repositories: by USER/NAME.
    upload_mode: `regular` or `lfs`, for files that end with safetensors.
    only_answer: sent in place of all other answers.
    refuses_objects: whether uploads by the protocol of LFS fail.
    requests: methods and paths of all requests.
    """

    def __init__(self):
        self.repositories: dict[str, Repository] = {}
        self.upload_mode = "regular"
        self.only_answer: bytes | None = None
        self.refuses_objects = False
        self.requests: list[str] = []
        self.objects: dict[str, bytes] = {}
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "FakeHub":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self._start()
        if match := re.fullmatch(r"/api/models/(\w+/[^/]+)(?:/revision/(.+))?", path):
            self._about(match[1], match[2] or "main")
        elif match := re.fullmatch(r"/(\w+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(*match.groups())
        else:
            self._refuse(404, path)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        path = self._start()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == "/api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        if not self._has_token():
            return self._refuse(401, "Invalid credentials in Authorization header")
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        match = re.fullmatch(
            r"/(?:api/models/)?(\w+/[^/]+?)(?:\.git/info/lfs/objects)?"
            r"/(preupload|commit|batch)(?:/main)?",
            path,
        )
        if match is None:
            return self._refuse(404, path)
        if not match[1].startswith(f"{USER}/"):
            return self._refuse(403, "You don't have write access")
        {"preupload": self._preupload, "commit": self._commit, "batch": self._batch}[
            match[2]
        ](self.hub.repositories[match[1]], body)

    def do_PUT(self) -> None:
        path = self._start()
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.hub.refuses_objects:
            return self._refuse(403, "the signature has expired")
        self.hub.objects[path.removeprefix("/lfs/")] = content
        self._send(200, b"")

    def _create(self, wanted: dict[str, str]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        url = f"{self.hub.url}/{name}"
        if name in self.hub.repositories:
            content = {"error": "You already created this model repo", "url": url}
            return self._send(409, json.dumps(content).encode())
        if wanted["organization"] != USER:
            return self._refuse(403, "You don't have the rights to create a model here")
        private = wanted.get("visibility") == "private" or wanted.get("private")
        self.hub.repositories[name] = Repository(private=bool(private))
        self._answer({"url": url, "name": name})

    def _about(self, name: str, revision: str) -> None:
        repository = self._readable(name)
        if repository is None:
            return self._refuse(401, "Repository not found", "RepoNotFound")
        number = repository.find(revision)
        if number is None:
            return self._refuse(404, "Invalid rev id", "RevisionNotFound")
        files = repository.commits[number].items()
        siblings = [{"rfilename": file, "size": len(data)} for file, data in files]
        about = {"id": name, "sha": sha(number), "private": repository.private}
        self._answer({**about, "siblings": siblings})

    def _resolve(self, name: str, revision: str, file: str) -> None:
        repository = self._readable(name)
        if repository is None:
            return self._refuse(401, "Repository not found", "RepoNotFound")
        number = repository.find(revision)
        content = None if number is None else repository.commits[number].get(file)
        if number is None or content is None:
            return self._refuse(404, "Entry not found", "EntryNotFound")
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        self._send(200, content, {"ETag": etag, "X-Repo-Commit": sha(number)})

    def _preupload(self, repository: Repository, body: bytes) -> None:
        paths = [file["path"] for file in json.loads(body)["files"]]
        modes = {"safetensors": self.hub.upload_mode}
        files = [
            {"path": path, "uploadMode": mode, "shouldIgnore": False}
            for path in paths
            for mode in [modes.get(path.rpartition(".")[2], "regular")]
        ]
        self._answer({"files": files})

    def _batch(self, repository: Repository, body: bytes) -> None:
        objects = [
            entry | {"actions": {"upload": {"href": f"{self.hub.url}/lfs/{oid}"}}}
            for entry in json.loads(body)["objects"]
            for oid in [entry["oid"]]
        ]
        self._answer({"transfer": "basic", "objects": objects})

    def _commit(self, repository: Repository, body: bytes) -> None:
        header, *lines = map(json.loads, body.splitlines())
        newest = sha(len(repository.commits) - 1)
        if header["value"].get("parentCommit", newest) != newest:
            return self._refuse(412, "A commit has happened since.")
        files = {}
        for line in lines:
            value = line["value"]
            if line["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        repository.commit(files, header["value"]["summary"])
        newest = sha(len(repository.commits) - 1)
        self._answer({"commitUrl": f"{self.hub.url}/x/y", "commitOid": newest})

    def _readable(self, name: str) -> Repository | None:
        repository = self.hub.repositories.get(name)
        if repository is not None and repository.private and not self._has_token():
            return None
        return repository

    def _has_token(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _start(self) -> str:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        return path

    def _answer(self, content: object) -> None:
        self._send(200, json.dumps(content).encode())

    def _refuse(self, code: int, message: str, error: str = "") -> None:
        headers = {"X-Error-Code": error} if error else {}
        headers["X-Error-Message"] = message
        self._send(code, json.dumps({"error": message}).encode(), headers)

    def _send(
        self, code: int, content: bytes, headers: dict[str, str] | None = None
    ) -> None:
        if self.hub.only_answer is not None:
            code, content, headers = 200, self.hub.only_answer, {}
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Does nothing: tests read the output."""
