"""A fake Google Cloud Storage server with the objects in memory.

It implements the part of the JSON interface that gcsfs, TensorStore and
google-cloud-storage use in azjax.
"""

import contextlib
import itertools
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

BUCKET = "bucket"
JSON = {"Content-Type": "application/json"}


class FakeGcs:
    """A server with one bucket; a context manager that stops it.

    objects: contents by object name.
    refused: a regular expression; writes of objects whose names match it fail.
    """

    def __init__(self):
        self.objects: dict[str, bytes] = {}
        self.refused: str | None = None
        self.generations: dict[str, int] = {}
        self.uploads: dict[str, tuple[str, bytearray]] = {}
        self.lock = threading.RLock()
        self._numbers = itertools.count(1)
        handler = type("Handler", (_Handler,), {"store": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """Returns environment variables with which libraries use this server."""
        return {
            "STORAGE_EMULATOR_HOST": self.url,
            "TENSORSTORE_GCS_HTTP_URL": self.url,
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "none",
            "GOOGLE_CLOUD_PROJECT": "none",
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # use HTTP instead of gRPC
        }

    def __enter__(self) -> "FakeGcs":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def put(self, name: str, content: bytes) -> None:
        """Writes an object."""
        with self.lock:
            self.objects[name] = content
            self.generations[name] = next(self._numbers)

    def remove(self, name: str) -> bool:
        """Removes an object; returns whether it existed."""
        with self.lock:
            self.generations.pop(name, None)
            return self.objects.pop(name, None) is not None

    def about(self, name: str) -> dict[str, object]:
        """Returns the metadata of an object."""
        generation = str(self.generations[name])
        return {
            "kind": "storage#object",
            "bucket": BUCKET,
            "name": name,
            "size": str(len(self.objects[name])),
            "generation": generation,
            "metageneration": "1",
            "etag": generation,
            "timeCreated": "2026-01-01T00:00:00.000Z",
            "updated": "2026-01-01T00:00:00.000Z",
        }


class _Handler(BaseHTTPRequestHandler):
    store: FakeGcs
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, query = self._split()
        if path == f"/storage/v1/b/{BUCKET}":
            self._answer({"kind": "storage#bucket", "name": BUCKET, "id": BUCKET})
        elif path == f"/storage/v1/b/{BUCKET}/o":
            self._list(query)
        elif name := self._object(path):
            self._read(name, query)
        else:
            self._refuse(404, "no such bucket")

    def do_POST(self) -> None:
        path, query = self._split()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == f"/upload/storage/v1/b/{BUCKET}/o":
            self._upload(query, body)
        elif match := re.fullmatch(
            rf"/storage/v1/b/{BUCKET}/o/([^/]+)/moveTo/o/([^/]+)", path
        ):
            source, target = map(unquote, match.groups())
            with self.store.lock:
                if source not in self.store.objects:
                    return self._refuse(404, source)
                if self._may_write(target, query):
                    self.store.put(target, self.store.objects[source])
                    self.store.remove(source)
                    self._answer(self.store.about(target))
        else:
            self._refuse(404, path)

    def do_PUT(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        path, _ = self._split()
        name = self._object(path)
        if name is None or not self.store.remove(name):
            return self._refuse(404, path)
        self._send(204, b"", {})

    def _upload(self, query: dict[str, str], body: bytes) -> None:
        kind = query.get("uploadType")
        if "upload_id" in query:
            name, content = self.store.uploads[query["upload_id"]]
            content += body
            total = self.headers.get("Content-Range", "/*").rpartition("/")[2]
            if total in ("*", ""):
                headers = {"Range": f"bytes=0-{len(content) - 1}"}
                return self._send(308, b"", headers)
            return self._write(name, bytes(content), query)
        if kind == "resumable":
            name = query.get("name") or json.loads(body)["name"]
            key = str(len(self.store.uploads))
            self.store.uploads[key] = name, bytearray()
            where = f"{self.store.url}{urlsplit(self.path).path}?upload_id={key}"
            return self._send(200, b"{}", {"Location": where})
        if kind == "multipart":
            boundary = self.headers["Content-Type"].partition("boundary=")[2]
            _, about, rest = body.split(b"--" + boundary.strip('"').encode(), 2)
            name = json.loads(about.partition(b"\n\n")[2])["name"]
            end = rest.rindex(b"\n--" + boundary.strip('"').encode() + b"--")
            return self._write(name, rest[:end].partition(b"\n\n")[2], query)
        return self._write(query["name"], body, query)

    def _write(self, name: str, content: bytes, query: dict[str, str]) -> None:
        with self.store.lock:
            if self._may_write(name, query):
                self.store.put(name, content)
                self._answer(self.store.about(name))

    def _may_write(self, name: str, query: dict[str, str]) -> bool:
        wanted = query.get("ifGenerationMatch")
        if self.store.refused and re.search(self.store.refused, name):
            self._refuse(403, "this account may not write here")
        elif wanted and int(wanted) != self.store.generations.get(name, 0):
            self._refuse(412, "conditionNotMet")
        else:
            return True
        return False

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        first, last = query.get("startOffset", ""), query.get("endOffset")
        items, prefixes = [], set()
        with self.store.lock:
            for name in sorted(self.store.objects):
                if not name.startswith(prefix) or name < first:
                    continue
                if last and name >= last:
                    continue
                rest = name[len(prefix) :]
                if delimiter and delimiter in rest:
                    prefixes.add(prefix + rest.split(delimiter)[0] + delimiter)
                else:
                    items.append(self.store.about(name))
        most = int(query.get("maxResults", 1000))
        content = {"kind": "storage#objects", "prefixes": sorted(prefixes)}
        self._answer({**content, "items": items[:most]})

    def _read(self, name: str, query: dict[str, str]) -> None:
        with self.store.lock:
            content = self.store.objects.get(name)
            if content is None:
                return self._refuse(404, name)
            about = self.store.about(name)
        if query.get("alt") != "media":
            return self._answer(about)
        headers = {
            "x-goog-generation": str(about["generation"]),
            "x-goog-stored-content-length": str(len(content)),
        }
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not match:
            return self._send(200, content, headers)
        if match[1]:
            start = int(match[1])
            end = min(int(match[2] or len(content) - 1), len(content) - 1)
        else:
            start, end = max(0, len(content) - int(match[2])), len(content) - 1
        if start > end:
            return self._refuse(416, "the range cannot be satisfied")
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        return self._send(206, content[start : end + 1], headers)

    def _split(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return parts.path.removeprefix("/download"), query

    def _object(self, path: str) -> str | None:
        match = re.fullmatch(rf"/storage/v1/b/{BUCKET}/o/(.+)", path)
        return unquote(match[1]) if match else None

    def _answer(self, content: object) -> None:
        self._send(200, json.dumps(content).encode(), JSON)

    def _refuse(self, code: int, message: str) -> None:
        content = {"error": {"code": code, "message": message}}
        self._send(code, json.dumps(content).encode(), JSON)

    def _send(self, code: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Does nothing: tests read the output."""
