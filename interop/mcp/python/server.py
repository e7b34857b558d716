"""The server under test: its addresses, its trainers' door, and what it tells its operators."""

import asyncio
import contextlib
import json
import os
import time
import urllib.error
import urllib.request

import websockets

URL = os.environ["OPENENV_URL"]
CONTROL = os.environ["OPENENV_CONTROL"]
CUTTER = os.environ["OPENENV_CUTTER"]
CUTTER_CONTROL = os.environ["OPENENV_CUTTER_CONTROL"]
TIMEOUT_S = 20

TOOLS = [
    "ask", "cancelled", "count", "echo", "error", "execute_code", "fail", "grow", "log", "picture", "place", "progress", "sample", "slow",
]  # fmt: skip

# The reward of one count: a number that no answer to an agent may have in it.
REWARD = 0.4375

METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602


async def http(method, url, body=None, **headers):
    """An HTTP request in a thread of its own; returns status, headers and text, whatever the status."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)

    def send():
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read().decode()

    return await asyncio.to_thread(send)


async def rpc(url, method, **params):
    """A JSON-RPC request without a handshake; returns the answer's result."""
    _, _, text = await http("POST", url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answer = json.loads(text)
    assert "result" in answer, text
    return answer["result"]


async def sessions():
    """What the server tells its operators of its sessions, by their ids."""
    _, _, text = await http("GET", CONTROL + "/sessions")
    return {session["session_id"]: session for session in json.loads(text)["sessions"]}


async def cut():
    """Cuts all connections that are open through the cutter."""
    _, _, text = await http("POST", CUTTER_CONTROL + "/cut")
    return int(text)


async def eventually(condition, within_s=5.0):
    """Waits for what comes without an answer to wait for. The condition may be a coroutine function."""
    deadline = time.monotonic() + within_s
    while True:
        holds = condition()
        if asyncio.iscoroutine(holds):
            holds = await holds
        if holds:
            return
        assert time.monotonic() < deadline, f"still not so after {within_s} s"
        await asyncio.sleep(0.02)


class Door:
    """A way to a session of an MCP client's own."""

    def __init__(self, base=URL):
        self.base = base


class Plain(Door):
    """The client opens a session by its initialize, and ends it by its DELETE."""

    opens = True

    @contextlib.asynccontextmanager
    async def address(self):
        yield self.base + "/mcp"


class Handle(Door):
    """A trainer has the session and gives the client a handle on it."""

    opens = False

    @contextlib.asynccontextmanager
    async def address(self):
        self.session_id = (await rpc(self.base + "/mcp", "openenv/session/create"))["session_id"]
        minted = await rpc(self.base + "/mcp", "openenv/session/agent", session_id=self.session_id)
        assert minted["url"] == f"{self.base}/mcp/{minted['handle']}"
        try:
            yield minted["url"]
        finally:
            closed = await rpc(self.base + "/mcp", "openenv/session/close", session_id=self.session_id)
            assert closed["closed"] is True


class Trainer:
    """A trainer's socket: frames out, frames in."""

    def __init__(self, socket):
        self._socket = socket

    async def ask(self, type, data=None):
        await self._socket.send(json.dumps({"type": type} if data is None else {"type": type, "data": data}))
        reply = json.loads(await asyncio.wait_for(self._socket.recv(), TIMEOUT_S))
        assert reply["type"] != "error", reply
        return reply["data"]

    async def rpc(self, method, **params):
        reply = await self.ask("mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return reply["result"]


@contextlib.asynccontextmanager
async def trainer():
    async with websockets.connect(URL.replace("http", "ws", 1) + "/ws", open_timeout=TIMEOUT_S, proxy=None) as socket:
        yield Trainer(socket)
