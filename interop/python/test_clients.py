"""The stock clients against a server in simulation mode."""

import re

import pytest
from openenv.core import GenericEnvClient
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
)
from openenv.core.mcp_client import MCPToolClient

from server import FAILING_CALLS, INVALID_PARAMS, TOOLS, WORKING_CALLS, call, eventually

pytestmark = pytest.mark.anyio
both_clients = pytest.mark.parametrize("client_class", [GenericEnvClient, MCPToolClient])


async def state_of(env):
    """The episode's id and step count; one client has a dict for them, the other an object."""
    state = await env.state()
    if isinstance(state, dict):
        return state["episode_id"], state["step_count"]
    return state.episode_id, state.step_count


async def session_id_of(env):
    """The id of the session behind a client's socket; the clients have no public way to ask."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}
    reply = await env._send_and_receive({"type": "mcp", "data": request})
    return reply["data"]["result"]["session_id"]


def call_action(tool, arguments):
    return {"type": "call_tool", "tool_name": tool, "arguments": arguments}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def names_field(message, field):
    return field is None or re.search(rf"\b{field}\b", message) is not None


def check_tools(tools):
    """tools are (name, description, input schema) of all tools of the example."""
    assert sorted(name for name, _, _ in tools) == TOOLS
    for name, description, schema in tools:
        assert description
        assert schema["type"] == "object"
        wanted = {"a": "integer", "b": "integer"} if name == "add" else {"message": "string"}
        assert {field: of["type"] for field, of in schema["properties"].items()} == wanted
        assert sorted(schema["required"]) == sorted(wanted)


# Both clients.


@both_clients
async def test_reset_begins_an_episode(client, client_class):
    async with client(client_class) as env:
        started = await env.reset(seed=7, episode_id="episode-7")
        assert started.reward is None
        assert started.done is False
        assert await state_of(env) == ("episode-7", 0)

        # CallToolAction is what either client takes.
        await env.step(CallToolAction(tool_name="echo_message", arguments={"message": "hi"}))
        assert await state_of(env) == ("episode-7", 1)

        await env.reset()
        episode_id, step_count = await state_of(env)
        assert isinstance(episode_id, str) and episode_id not in ("", "episode-7")
        assert step_count == 0


@both_clients
async def test_tools_need_no_reset(client, client_class):
    async with client(client_class) as env:
        listed = await env.step(ListToolsAction())
        assert listed.reward is None
        called = await env.step(CallToolAction(tool_name="add", arguments={"a": 1, "b": 2}))
        assert is_number(called.reward)


@both_clients
async def test_two_clients_are_apart(client, client_class):
    action = CallToolAction(tool_name="add", arguments={"a": 1, "b": 2})
    async with client(client_class) as one, client(client_class) as other:
        assert await session_id_of(one) != await session_id_of(other)
        await one.reset(episode_id="one")
        await other.reset(episode_id="other")
        await one.step(action)
        await one.step(action)
        await other.step(action)
        assert await state_of(one) == ("one", 2)
        assert await state_of(other) == ("other", 1)
        await other.reset(episode_id="another")
        assert await state_of(one) == ("one", 2)


@both_clients
async def test_close_ends_the_session(client, client_class):
    async with client(client_class) as env:
        await env.reset()
        session_id = await session_id_of(env)
        answer = call("add", {"a": 1, "b": 2}, session_id=session_id)
        assert answer["result"]["data"] == 3
        _, step_count = await state_of(env)
        assert step_count == 1

    def is_gone():
        answer = call("add", {"a": 1, "b": 2}, session_id=session_id)
        return "error" in answer and answer["error"]["code"] == INVALID_PARAMS

    await eventually(is_gone)


# GenericEnvClient: plain dicts, so this is the wire as it is.


@pytest.mark.parametrize("tool, arguments, wanted", WORKING_CALLS)
async def test_generic_client_calls_a_tool(client, tool, arguments, wanted):
    async with client(GenericEnvClient) as env:
        await env.reset()
        called = await env.step(call_action(tool, arguments))
        assert is_number(called.reward)
        assert called.done is False
        assert called.observation["tool_name"] == tool
        assert called.observation["error"] is None

        result = called.observation["result"]
        assert result["data"] == wanted
        assert type(result["data"]) is type(wanted)
        assert result["is_error"] is False
        assert result["content"]
        is_object = isinstance(wanted, dict)
        assert result["structured_content"] == (wanted if is_object else {"result": wanted})
        if not is_object:
            assert result["meta"]["fastmcp"]["wrap_result"] is True


@pytest.mark.parametrize("tool, arguments, error_type, field", FAILING_CALLS)
async def test_generic_client_gets_a_typed_error(client, tool, arguments, error_type, field):
    async with client(GenericEnvClient) as env:
        await env.reset()
        called = await env.step(call_action(tool, arguments))
        assert is_number(called.reward)
        assert called.observation["tool_name"] == tool
        assert called.observation["result"] is None
        assert called.observation["error"]["error_type"] == error_type
        assert names_field(called.observation["error"]["message"], field)
        _, step_count = await state_of(env)
        assert step_count == 1


async def test_generic_client_lists_tools(client):
    async with client(GenericEnvClient) as env:
        await env.reset()
        listed = await env.step({"type": "list_tools"})
        assert listed.reward is None
        assert listed.done is False
        tools = listed.observation["tools"]
        check_tools([(tool["name"], tool["description"], tool["input_schema"]) for tool in tools])
        assert listed.observation["metadata"] == {}
        _, step_count = await state_of(env)
        assert step_count == 1


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"type": "no_such_type"},
        {"type": "call_tool"},
        {"type": "call_tool", "tool_name": "add", "arguments": [1, 2]},
        {"type": "list_tools", "colour": 3},
    ],
)
async def test_generic_client_survives_a_bad_action(client, action):
    async with client(GenericEnvClient) as env:
        await env.reset(episode_id="e")
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            await env.step(action)
        assert await state_of(env) == ("e", 0)


async def test_generic_client_reconnects_to_a_new_session(client):
    async with client(GenericEnvClient) as env:
        await env.reset(episode_id="before")
        await env.disconnect()
        episode_id, step_count = await state_of(env)
        assert episode_id != "before"
        assert step_count == 0


# MCPToolClient: reset, step and state over a socket, tools over HTTP, one session behind both.


async def test_mcp_client_lists_tools(client):
    async with client(MCPToolClient) as env:
        tools = await env.list_tools()
        check_tools([(tool.name, tool.description, tool.input_schema) for tool in tools])
        assert (await env.get_tool("add")).name == "add"
        assert await env.has_tool("echo_message")
        assert not await env.has_tool("no_such_tool")


@pytest.mark.parametrize("tool, arguments, wanted", WORKING_CALLS)
async def test_mcp_client_calls_a_tool(client, tool, arguments, wanted):
    async with client(MCPToolClient) as env:
        got = await env.call_tool(tool, **arguments)
        assert got == wanted
        assert type(got) is type(wanted)


@pytest.mark.parametrize("tool, arguments, error_type, field", FAILING_CALLS)
async def test_mcp_client_gets_a_typed_error(client, tool, arguments, error_type, field):
    async with client(MCPToolClient) as env:
        with pytest.raises(RuntimeError) as raised:
            await env.call_tool(tool, **arguments)
        assert names_field(str(raised.value), field)

        # The client drops the code, so ask again without it.
        error = call(tool, arguments, session_id=await session_id_of(env))["error"]
        assert error["code"] == INVALID_PARAMS
        assert error["data"]["error_type"] == error_type


async def test_mcp_client_steps(client):
    async with client(MCPToolClient) as env:
        await env.reset()
        listed = await env.step(ListToolsAction())
        assert isinstance(listed.observation, ListToolsObservation)
        assert sorted(tool.name for tool in listed.observation.tools) == TOOLS
        assert listed.reward is None

        called = await env.step(CallToolAction(tool_name="add", arguments={"a": 1, "b": 2}))
        assert isinstance(called.observation, CallToolObservation)
        assert called.observation.error is None
        assert called.observation.result["data"] == 3
        assert is_number(called.reward)

        failed = await env.step(CallToolAction(tool_name="no_such_tool"))
        assert failed.observation.error.error_type.value == "tool_not_found"
        assert is_number(failed.reward)


async def test_mcp_client_counts_the_steps_of_both_doors(client):
    async with client(MCPToolClient) as env:
        await env.reset(episode_id="e")
        await env.step(ListToolsAction())
        assert await state_of(env) == ("e", 1)
        await env.step(CallToolAction(tool_name="add", arguments={"a": 1, "b": 2}))
        assert await state_of(env) == ("e", 2)
        await env.call_tool("add", a=1, b=2)
        assert await state_of(env) == ("e", 3)
        with pytest.raises(RuntimeError):
            await env.call_tool("no_such_tool")
        assert await state_of(env) == ("e", 4)
        await env.list_tools(use_cache=False)  # tools/list is no step
        assert await state_of(env) == ("e", 4)
        await env.reset(episode_id="f")
        assert await state_of(env) == ("f", 0)


async def test_mcp_client_reconnects_to_its_session(client):
    async with client(MCPToolClient) as env:
        await env.reset(episode_id="e")
        await env.call_tool("add", a=1, b=2)
        await env.disconnect()
        assert await state_of(env) == ("e", 1)
