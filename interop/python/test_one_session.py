"""A server with room for one session."""

import pytest
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from server import SERVER_ERROR, TOOLS, call, rpc

pytestmark = pytest.mark.anyio
both_clients = pytest.mark.parametrize("client_class", [GenericEnvClient, MCPToolClient])


async def test_mcp_client_needs_one_slot_for_both_doors(client):
    async with client(MCPToolClient) as env:
        await env.reset()
        assert await env.call_tool("add", a=1, b=2) == 3
        assert (await env.state()).step_count == 1


@both_clients
async def test_close_frees_the_slot_at_once(client, client_class):
    for _ in range(10):
        async with client(client_class) as env:
            await env.reset()


@both_clients
async def test_a_full_server_refuses(client, client_class):
    async with client(client_class) as env:
        await env.reset(episode_id="e")

        with pytest.raises(RuntimeError, match="Failed to create MCP session"):
            async with client(MCPToolClient):
                pass
        with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
            async with client(GenericEnvClient) as refused:
                await refused.reset()
        error = call("add", {"a": 1, "b": 2})["error"]
        assert error["code"] == SERVER_ERROR
        assert error["data"]["active_sessions"] == error["data"]["max_sessions"] == 1
        # A listing takes no slot.
        assert sorted(tool["name"] for tool in rpc("tools/list")["result"]["tools"]) == TOOLS

        state = await env.state()
        assert (state["episode_id"] if isinstance(state, dict) else state.episode_id) == "e"
