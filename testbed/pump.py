"""Another program's traffic: sends to a peer, and drains what the peer sends, as fast as it can.

    pump.py OWN_ADDRESS PEER_ADDRESS PORT     prints `on` once both streams flow

On the standard library alone, since it is started in nodes of clusters. Ends when it is killed.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time

BLOCK = 1 << 18
PATIENCE_S = 30.0


def connected(address: str, port: int) -> socket.socket:
    """A connection to a peer that may not listen yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE_S)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def send(stream: socket.socket) -> None:
    data = bytes(BLOCK)
    with contextlib.suppress(OSError):  # the peer was killed first
        while True:
            stream.sendall(data)


def main(own: str, peer: str, port: str) -> None:
    server = socket.create_server((own, int(port)))
    outgoing = connected(peer, int(port))
    incoming, _ = server.accept()
    threading.Thread(target=send, args=(outgoing,), daemon=True).start()
    sys.stdout.write("on\n")
    sys.stdout.flush()
    room = bytearray(BLOCK)
    while incoming.recv_into(room):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
