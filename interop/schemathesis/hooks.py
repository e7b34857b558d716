"""What schemathesis is not to ask for, and what it is to look at besides."""

import json

import schemathesis
from schemathesis.core.parameters import ParameterLocation

SHORTEST_TIMEOUT_S = 5
INTERNAL_ERROR = -32603

with open("agents.txt") as file:
    AGENTS = {json.loads(line) for line in file}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Asks for nothing that rightly fails or never ends."""
    body = case.body
    # A step beyond the deadline that it came with is a 504.
    if isinstance(body, dict) and isinstance(body.get("timeout_s"), float) and 0 < body["timeout_s"] < SHORTEST_TIMEOUT_S:
        case.body = body | {"timeout_s": SHORTEST_TIMEOUT_S}
    # The stream of GET ends with its client. The MCP clients' tests read it.
    if case.method.upper() == "GET" and case.headers.get("Mcp-Session-Id") in AGENTS:
        del case.headers["Mcp-Session-Id"]


@schemathesis.check
def json_rpc(ctx, response, case):
    """A JSON-RPC request that its schema refuses gets an error, and none is the server's own fault."""
    content_type = response.headers.get("content-type", [""])[0]
    if case.method.upper() != "POST" or not case.operation.path.startswith("/mcp") or content_type != "application/json":
        return
    answer = response.json()
    error = answer.get("error") if isinstance(answer, dict) else None
    assert not error or error["code"] != INTERNAL_ERROR, f"the server failed: {error}"
    body = case.meta.components.get(ParameterLocation.BODY) if case.meta else None
    if body is not None and body.mode.is_negative:
        assert error or "detail" in answer, "a request that its schema refuses was answered with a result"
