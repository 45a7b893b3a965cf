"""Runs cells in a new kernel of a notebook: one line of code in, what it printed as one line out; the first is its id.

Run with an interpreter that has ``requests`` and ``websocket-client``, with the address ``det notebook start`` says.
With a second argument, an id, it goes on with the kernel that has it.
"""

from __future__ import annotations

import json
import sys
import time
from urllib.parse import urlsplit
from uuid import uuid4

import requests
import websocket


def main(address: str, kernel: str = "") -> None:
    parts = urlsplit(address)
    base = f"{parts.scheme}://{parts.netloc}{parts.path}"
    if not kernel:
        answer = requests.post(f"{base}api/kernels?{parts.query}", json={}, timeout=60)
        answer.raise_for_status()
        kernel = answer.json()["id"]
    socket = websocket.create_connection(
        f"{base.replace('http', 'ws', 1)}api/kernels/{kernel}/channels?{parts.query}", timeout=60
    )
    say(kernel)
    for code in sys.stdin:
        say(run(socket, code))
    socket.close()


def run(socket: websocket.WebSocket, code: str) -> str:
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    header = {
        "msg_id": uuid4().hex,
        "msg_type": "execute_request",
        "username": "",
        "session": uuid4().hex,
        "version": "5.3",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    socket.send(json.dumps(message))
    printed = ""
    while True:
        received = json.loads(socket.recv())
        if received["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        kind = received["msg_type"]
        if kind == "stream":
            printed += received["content"]["text"]
        elif kind == "error":
            printed += f"{received['content']['ename']}: {received['content']['evalue']}"
        elif kind == "status" and received["content"]["execution_state"] == "idle":
            return printed


def say(text: str) -> None:
    sys.stdout.write(f"{json.dumps(text.strip())[1:-1]}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
