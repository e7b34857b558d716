"""A server in production mode: tools for everyone, the control of episodes for nobody here."""

import pytest
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from server import TOOLS, get, post, validate

pytestmark = pytest.mark.anyio


def test_openenv_validate():
    assert validate()["mode"] == "production"


def test_there_are_no_control_routes():
    assert post("/reset", {}).status_code == 404
    assert post("/step", {"action": {"type": "list_tools"}}).status_code == 404
    assert get("/state").status_code == 404
    assert not {"/reset", "/step", "/state"} & get("/openapi.json").json()["paths"].keys()


async def test_mcp_client_uses_tools(client):
    async with client(MCPToolClient) as env:
        assert sorted(tool.name for tool in await env.list_tools()) == TOOLS
        assert await env.call_tool("echo_message", message="hi") == "hi"
        with pytest.raises(RuntimeError, match="NOT_ALLOWED"):
            await env.reset()
        assert await env.call_tool("add", a=1, b=2) == 3


async def test_generic_client_is_refused_and_stays_connected(client):
    async with client(GenericEnvClient) as env:
        for operation in [env.reset, env.state, lambda: env.step({"type": "list_tools"}), env.reset]:
            with pytest.raises(RuntimeError, match="NOT_ALLOWED"):
                await operation()
