"""A registry on this machine that serves one OCI archive: what engines ask for of version 2,
the distribution API. With a password it answers 401 to whoever does not send it."""

from __future__ import annotations

import base64
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


Answer = tuple[int, bytes, str, str]  # status, body, media type, digest


class Archive:
    """The blobs of an OCI archive, by the paths of the distribution API."""

    def __init__(self, members: tarfile.TarFile) -> None:
        self.members = members
        self.names = {member.name: member for member in members}
        self.lock = threading.Lock()
        self.digest = json.loads(self.read("index.json") or b"")["manifests"][0]["digest"]

    def read(self, name: str) -> bytes | None:
        member = self.names.get(name)
        if member is None:
            return None
        with self.lock:
            file = self.members.extractfile(member)
            assert file
            return file.read()

    def answer(self, path: str) -> Answer | None:
        if path.rstrip("/") == "/v2":
            return 200, b"{}", "application/json", ""
        kind, _, wanted = path.rpartition("/")
        manifest = kind.endswith("/manifests")
        digest = self.digest if manifest and ":" not in wanted else wanted
        data = self.read(f"blobs/{digest.replace(':', '/')}")
        media = MANIFEST if manifest else "application/octet-stream"
        return None if data is None else (200, data, media, digest)


class Handler(BaseHTTPRequestHandler):
    """Answers of one archive, to those who send the password where there is one."""

    def __init__(self, archive: Archive, password: str, *rest: Any) -> None:
        self.archive = archive
        self.due = "Basic " + base64.b64encode(f"me:{password}".encode()).decode()
        self.password = password
        super().__init__(*rest)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        if self.password and self.headers.get("Authorization") != self.due:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="here"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        answer = self.archive.answer(self.path)
        if answer is None:
            self.send_error(404)
            return
        status, data, media, digest = answer
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(data)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(archive: Path, password: str = "") -> Iterator[str]:
    """host:port of the registry, whichever name and tag is asked for."""
    with tarfile.open(archive) as members:
        handler = partial(Handler, Archive(members), password)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"localhost:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
