"""A trainer on /ws gives an agent a handle; the agent plays by a stock MCP client and leaves."""

import asyncio
import json

import pytest
import websockets

from server import CONTROL, METHOD_NOT_FOUND, REWARD, URL, eventually, http, rpc, sessions, trainer

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def call(tool, **arguments):
    return {"type": "call_tool", "tool_name": tool, "arguments": arguments}


async def test_an_agent_plays_a_trainers_episode(peer_class):
    async with trainer() as train:
        await train.ask("reset", {"seed": 7, "episode_id": "e"})
        session_id = (await train.rpc("openenv/session/create"))["session_id"]
        minted = await train.rpc("openenv/session/agent")
        assert minted["url"].startswith(URL + "/mcp/")
        assert session_id not in json.dumps(minted)

        told = []
        async with peer_class(minted["url"]).open() as peer:
            told.append(peer.instructions)
            told.append(repr(await peer.tools()))
            for wanted in ("1", "2"):
                result = await peer.call("count")
                assert result.texts == [wanted]
                told.append(repr(result))
            # The trainer sees it while the agent plays.
            assert await train.ask("state") == state(2, 2 * REWARD, REWARD, False)
            told.append(repr(await peer.call("fail")))
            told.append(repr(await peer.call("count")))
        await eventually(lambda: agent_has_left(session_id))
        for text in told:
            assert str(REWARD) not in text and "reward" not in text and session_id not in text

        # The episode is over by the agent's doing, and the trainer goes on.
        assert await train.ask("state") == state(4, 3 * REWARD, REWARD, True)
        observed = await train.ask("step", call("count"))
        assert observed["observation"]["result"]["data"] == "4"
        assert observed["reward"] == REWARD and observed["done"] is True
        await train.ask("reset", {"episode_id": "f"})
        observed = await train.ask("step", call("count"))
        assert observed["observation"]["result"]["data"] == "1" and observed["done"] is False
        assert (await train.ask("state"))["episode_id"] == "f"

        # The handle is good for another agent.
        async with peer_class(minted["url"]).open() as peer:
            assert await peer.text("count") == "2"


def state(steps, total, last, done):
    return {"episode_id": "e", "step_count": steps, "reward_total": total, "last_reward": last, "done": done}


async def agent_has_left(session_id):
    return (await sessions())[session_id]["agent"] is False


async def test_a_handle_opens_tools_only():
    async with trainer() as train:
        await train.ask("reset", {"episode_id": "e"})
        session_id = (await train.rpc("openenv/session/create"))["session_id"]
        handle = (await train.rpc("openenv/session/agent"))["handle"]
        answers = []

        async with websockets.connect(f"{URL.replace('http', 'ws', 1)}/ws?session_id={handle}", proxy=None) as socket:
            refused = json.loads(await asyncio.wait_for(socket.recv(), 10))
            answers.append(json.dumps(refused))
            assert refused["data"]["code"] == "SESSION_ERROR"
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), 10)
            assert closed.value.rcvd.code == 1008

        for method, path, body in [
            ("POST", "/reset", {}),
            ("POST", "/step", {"action": call("count")}),
            ("GET", "/state", None),
        ]:
            status, _, text = await http(method, f"{URL}{path}?session_id={handle}", body)
            answers.append(text)
            assert status == 404, text
        for method, path in [("GET", f"/sessions/{handle}"), ("DELETE", f"/sessions/{handle}"), ("POST", f"/sessions/{handle}/agents")]:  # fmt: skip
            status, _, text = await http(method, CONTROL + path)
            answers.append(text)
            assert status == 404, text

        # Of JSON-RPC without a handshake it has what agents need.
        at_handle = f"{URL}/mcp/{handle}"
        for method in ("openenv/session/create", "openenv/session/agent", "openenv/session/close"):
            ask = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"session_id": handle}}
            _, _, text = await http("POST", at_handle, ask)
            answers.append(text)
            assert json.loads(text)["error"]["code"] == METHOD_NOT_FOUND
            if method != "openenv/session/create":  # which takes no session: it is a trainer's own
                _, _, text = await http("POST", URL + "/mcp", ask)
                answers.append(text)
                assert "error" in json.loads(text)
        called = await rpc(at_handle, "tools/call", name="count", arguments={})
        assert called["data"] == "1"
        answers.append(json.dumps(called))

        # As the id of an MCP client it is unknown.
        status, _, text = await http("DELETE", URL + "/mcp", Mcp_Session_Id=handle)
        answers.append(text)
        assert status == 404

        for text in answers:
            assert session_id not in text
        assert (await train.ask("state"))["step_count"] == 1

    # It ends with its session.
    await eventually(lambda: is_unknown(at_handle))


async def is_unknown(url):
    status, _, _ = await http("POST", url, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    return status == 404
