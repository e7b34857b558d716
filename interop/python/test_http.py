"""The HTTP routes of a server in simulation mode, as HTTP clients and validators see them."""

import pytest
import requests
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from openenv.core import GenericEnvClient

from server import (
    FAILING_CALLS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    TIMEOUT_S,
    TOOLS,
    URL,
    WORKING_CALLS,
    call,
    get,
    post,
    rpc,
    validate,
)


def test_health_and_metadata():
    assert get("/health").json()["status"] == "healthy"
    metadata = get("/metadata").json()
    assert metadata["name"] == "echo_env"
    assert metadata["description"]


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_pages(path):
    page = get(path)
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")
    assert "openapi.json" in page.text


def test_openenv_validate():
    assert validate()["mode"] == "simulation"


def test_openapi():
    description = get("/openapi.json").json()
    assert description["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(description).validate()
    for path in ["/reset", "/step", "/state", "/health", "/metadata", "/schema", "/mcp"]:
        assert path in description["paths"]


# Each of these calls gets an environment of its own.


def test_reset_step_and_state():
    reset = post("/reset", {"seed": 7, "episode_id": "episode-7"})
    assert reset.status_code == 200
    assert reset.json()["reward"] is None
    assert reset.json()["done"] is False
    assert isinstance(reset.json()["observation"], dict)
    assert requests.post(URL + "/reset", timeout=TIMEOUT_S).status_code == 200  # the body is optional

    action = {"type": "call_tool", "tool_name": "add", "arguments": {"a": 1, "b": 2}}
    step = post("/step", {"action": action, "timeout_s": 5, "request_id": "r1"})
    assert step.status_code == 200
    assert step.json()["observation"]["result"]["data"] == 3
    assert step.json()["done"] is False

    state = get("/state")
    assert state.status_code == 200
    assert state.json()["step_count"] == 0


@pytest.mark.parametrize(
    "path, body",
    [
        ("/reset", {"seed": "seven"}),
        ("/reset", {"seed": -1}),
        ("/reset", {"episode_id": "e" * 256}),
        ("/step", {}),
        ("/step", []),
        ("/step", {"action": {"type": "call_tool"}}),
        ("/step", {"action": {"type": "list_tools", "colour": 3}}),
        ("/step", {"action": {"type": "list_tools"}, "timeout_s": 0}),
        ("/step", {"action": {"type": "list_tools"}, "request_id": "r" * 256}),
    ],
)
def test_bad_bodies_are_explained(path, body):
    reply = post(path, body)
    assert reply.status_code == 422
    details = reply.json()["detail"]
    assert details
    for detail in details:
        assert {"type", "loc", "msg", "input"} <= detail.keys()


# JSON-RPC on /mcp without a handshake.


def test_a_call_without_a_session():
    assert call("add", {"a": 1, "b": 2})["result"]["data"] == 3
    assert sorted(tool["name"] for tool in rpc("tools/list")["result"]["tools"]) == TOOLS


def test_a_session_from_create_to_close():
    session_id = rpc("openenv/session/create")["result"]["session_id"]
    tools = rpc("tools/list", session_id=session_id)["result"]["tools"]
    assert sorted(tool["name"] for tool in tools) == TOOLS
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)

    result = call("echo_message", {"message": "hi"}, session_id=session_id)["result"]
    # MCP spells these its own way, the OpenEnv clients theirs.
    assert result["structuredContent"] == result["structured_content"] == {"result": "hi"}
    assert result["isError"] is result["is_error"] is False

    closed = rpc("openenv/session/close", session_id=session_id)["result"]
    assert closed == {"session_id": session_id, "closed": True}
    for method in ["tools/list", "openenv/session/close"]:
        assert rpc(method, session_id=session_id)["error"]["code"] == INVALID_PARAMS


def test_json_rpc_errors():
    assert post("/mcp", {}).json()["error"]["code"] == INVALID_REQUEST
    assert post("/mcp", []).json()["error"]["code"] == INVALID_REQUEST
    garbage = requests.post(URL + "/mcp", data="{", headers={"Content-Type": "application/json"}, timeout=TIMEOUT_S)
    assert garbage.status_code == 200
    assert garbage.json()["error"]["code"] == PARSE_ERROR

    assert rpc("no/such/method")["error"]["code"] == METHOD_NOT_FOUND
    assert rpc("tools/call", arguments={})["error"]["code"] == INVALID_PARAMS
    assert rpc("openenv/session/close")["error"]["code"] == INVALID_PARAMS
    for session_id in ["no-such-session", 7]:
        assert rpc("tools/list", session_id=session_id)["error"]["code"] == INVALID_PARAMS


# What /schema publishes must fit what is really sent and received.


@pytest.fixture(scope="module")
def accepts():
    """Tells whether one of the published schemas accepts a value; says why where it does not."""
    schemas = get("/schema").json()

    def accepts(name, value):
        errors = [error.message for error in Draft202012Validator(schemas[name]).iter_errors(value)]
        if errors:
            print(name, "refuses", value, "for", errors)  # pytest shows it where the test fails
        return not errors

    return accepts


def references(schema):
    """All $ref in a JSON document."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for value in schema:
            yield from references(value)


def test_schemas_are_schemas():
    schemas = get("/schema").json()
    assert {"action", "observation", "state", "reset_observation"} <= schemas.keys()
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
        assert all(reference.startswith("#") for reference in references(schema))


def test_schemas_fit_the_wire(accepts):
    actions = [{"type": "list_tools"}, {"type": "list_tools", "metadata": {}}]
    for tool, arguments, *_ in WORKING_CALLS + FAILING_CALLS:
        actions.append({"type": "call_tool", "tool_name": tool, "arguments": arguments})
    actions.append(actions[-1] | {"metadata": {"note": "x"}})

    with GenericEnvClient(base_url=URL).sync() as env:
        assert accepts("reset_observation", env.reset(seed=7, episode_id="e").observation)
        assert accepts("state", env.state())
        for action in actions:
            assert accepts("action", action)
            assert accepts("observation", env.step(action).observation)
            assert accepts("state", env.state())


@pytest.mark.parametrize(
    "action",
    [{}, {"type": "no_such_type"}, {"type": "call_tool"}, {"type": "list_tools", "colour": 3}],
)
def test_the_action_schema_refuses_what_the_server_refuses(accepts, action):
    assert not accepts("action", action)
