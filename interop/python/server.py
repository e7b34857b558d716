"""The server under test: its address, and its doors as plain HTTP."""

import asyncio
import json
import os
import subprocess
import sys
import time

import requests

URL = os.environ["OPENENV_URL"]
TIMEOUT_S = 20

# What a caller of a server that asks for tokens shows.
HEADERS = {"Authorization": "Bearer " + os.environ["OPENENV_TOKEN"]} if "OPENENV_TOKEN" in os.environ else None

TOOLS = ["add", "echo_message", "echo_with_length"]

# The server's JSON-RPC error codes.
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
SERVER_ERROR = -32000

# Calls that must fail: tool, arguments, type of error, and the field that its message must name.
FAILING_CALLS = [
    ("no_such_tool", {}, "tool_not_found", None),
    ("add", {"a": 1}, "invalid_args", "b"),
    ("add", {"a": 1, "b": "5"}, "invalid_args", "b"),
    ("add", {"a": 1, "b": True}, "invalid_args", "b"),
    ("add", {"a": 1, "b": 1.5}, "invalid_args", "b"),
    ("add", {"a": 1, "b": None}, "invalid_args", "b"),
    ("add", {"a": 1, "b": 2**70}, "invalid_args", "b"),
    ("add", {"a": 1, "b": 2, "colour": 3}, "invalid_args", "colour"),
    ("echo_message", {"message": ["hi"]}, "invalid_args", "message"),
]

# Calls that must succeed: tool, arguments and what the client's call_tool returns.
WORKING_CALLS = [
    ("echo_message", {"message": "hi"}, "hi"),
    ("echo_message", {"message": ""}, ""),
    ("echo_with_length", {"message": "héllo 👋"}, {"message": "héllo 👋", "length": 7}),
    ("add", {"a": 2, "b": -5}, -3),
    ("add", {"a": 5.0, "b": 1}, 6),
]


def get(path):
    return requests.get(URL + path, headers=HEADERS, timeout=TIMEOUT_S)


def post(path, body):
    return requests.post(URL + path, json=body, headers=HEADERS, timeout=TIMEOUT_S)


def rpc(method, **params):
    """A JSON-RPC request without a handshake; returns the whole answer."""
    reply = post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert reply.status_code == 200
    answer = reply.json()
    assert answer["jsonrpc"] == "2.0" and answer["id"] == 1
    assert ("result" in answer) != ("error" in answer)
    return answer


def call(tool, arguments, **params):
    return rpc("tools/call", name=tool, arguments=arguments, **params)


async def eventually(condition, within_s=5.0):
    """Waits for what a server does after it has answered, such as the end of a session whose socket has gone."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {within_s} s"
        await asyncio.sleep(0.05)


def validate():
    """The report of `openenv validate --url`, which must pass."""
    command = [sys.executable, "-B", "-m", "openenv.cli", "validate", "--url", URL, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert report["passed"]
    assert report["summary"]["failed_criteria"] == []
    return report
