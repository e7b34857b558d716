"""The stock OpenEnv client as the trainer, a stock MCP client as the agent."""

import pytest
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from server import REWARD, TIMEOUT_S, URL

pytestmark = pytest.mark.anyio


async def test_an_agent_plays_a_stock_trainers_episode(peer_class):
    async with GenericEnvClient(base_url=URL, message_timeout_s=TIMEOUT_S) as env:
        await env.reset(seed=7, episode_id="e")
        # The client has no public way to send frames of other types.
        request = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/agent"}
        reply = await env._send_and_receive({"type": "mcp", "data": request})

        async with peer_class(reply["data"]["result"]["url"]).open() as peer:
            for wanted in ("1", "2", "3"):
                assert await peer.text("count") == wanted

        state = await env.state()
        assert state["step_count"] == 3
        assert state["last_reward"] == REWARD
        assert state["done"] is True
        stepped = await env.step({"type": "call_tool", "tool_name": "count", "arguments": {}})
        assert stepped.reward == REWARD and stepped.done is True
        assert stepped.observation["result"]["data"] == "4"


async def test_code_of_stock_clients():
    code = "for text in ['a', 'b']:\n    print(echo(text=text))\nresult = count()"
    wanted = {"result": "1", "stdout": "a\nb\n", "tool_calls": 3, "error": None}
    async with GenericEnvClient(base_url=URL, message_timeout_s=TIMEOUT_S) as env:
        await env.reset()
        stepped = await env.step({"type": "execute_code", "code": code})
        assert stepped.observation["result"]["data"] == wanted
        assert (await env.state())["step_count"] == 1
        failed = await env.step({"type": "execute_code", "code": "count()\nno_such_tool()"})
        assert failed.observation["result"]["is_error"] and "no_such_tool" in failed.observation["result"]["data"]
    async with MCPToolClient(base_url=URL, message_timeout_s=TIMEOUT_S) as env:
        await env.reset()
        assert await env.call_tool("execute_code", code=code) == wanted
