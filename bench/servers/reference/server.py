"""The reference server, openenv on uvicorn, with the tools that the other measured servers have."""

import asyncio
import os
import socket

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Observation, State

REWARD = 0.5


class Echo(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        mcp = FastMCP("echo_env")

        @mcp.tool
        def echo_message(message: str) -> str:
            """Echo the message back."""
            return message

        @mcp.tool
        async def wait(message: str, seconds: float) -> str:
            """Echo the message back after a while."""
            await asyncio.sleep(seconds)
            return message

        super().__init__(mcp)
        self._state = State(episode_id="", step_count=0)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id=episode_id or "", step_count=0)
        return Observation(done=False, reward=None)

    def _step_impl(self, action, timeout_s=None, **kwargs):
        raise ValueError(f"not a tool action: {action}")

    @property
    def state(self):
        return self._state


def main():
    app = create_fastapi_app(
        Echo,
        CallToolAction,
        CallToolObservation,
        max_concurrent_envs=int(os.environ.get("BENCH_MAX_SESSIONS", "70000")),
        env_name="echo_env",
    )
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # no other server writes a line for each request
        backlog=4096,
        # Connections lie idle while it is another server's turn, and their client reads nothing then.
        timeout_keep_alive=600,
        ws_ping_timeout=600,
    )
    uvicorn.Server(config).run(sockets=[listener])


main()
