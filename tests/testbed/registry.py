"""A registry on this machine that serves one OCI archive: what engines ask for of version 2,
the distribution API. With a password it answers 401 to whoever does not send it."""

from __future__ import annotations

import base64
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@contextmanager
def serving(archive: Path, password: str = "") -> Iterator[str]:
    """host:port of the registry, whichever name and tag is asked for."""
    with tarfile.open(archive) as members:
        names = {member.name: member for member in members}
        file = members.extractfile(names["index.json"])
        assert file
        digest = json.loads(file.read())["manifests"][0]["digest"]

        class Handler(BaseHTTPRequestHandler):
            lock = threading.Lock()

            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, *, body: bool) -> None:
                due = base64.b64encode(f"me:{password}".encode()).decode()
                if password and self.headers.get("Authorization") != f"Basic {due}":
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="here"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if self.path.rstrip("/") == "/v2":
                    self.send(b"{}", "application/json", "", body=body)
                    return
                kind, _, want = self.path.rpartition("/")
                own = digest if kind.endswith("/manifests") and ":" not in want else want
                member = names.get(f"blobs/{own.replace(':', '/')}")
                if member is None:
                    self.send_error(404)
                    return
                with self.lock:
                    blob = members.extractfile(member)
                    assert blob
                    data = blob.read()
                manifest = kind.endswith("/manifests")
                media = MANIFEST if manifest else "application/octet-stream"
                self.send(data, media, own, body=body)

            def send(self, data: bytes, media: str, own: str, *, body: bool) -> None:
                self.send_response(200)
                self.send_header("Content-Type", media)
                self.send_header("Content-Length", str(len(data)))
                if own:
                    self.send_header("Docker-Content-Digest", own)
                self.end_headers()
                if body:
                    self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"localhost:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
