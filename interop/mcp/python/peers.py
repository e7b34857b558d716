"""The clients under test, each behind the same few methods."""

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version

import anyio

from server import TIMEOUT_S

MCP_2 = version("mcp").startswith("2.")


class Refused(Exception):
    """A protocol error: what a client raises for an answer with an error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


@dataclass
class Result:
    texts: list
    images: list  # of (type, data in base64)
    structured: object
    is_error: bool
    error_type: object


class Peer:
    """One connection. The fields are what the server has sent unasked, and what it is answered."""

    def __init__(self, url):
        self.url = url
        self.logs = []
        self.changes = 0  # of the list of tools
        self.answer = ("accept", {"name": "Ada"})  # to a question
        self.questions = []
        self.prompts = []  # to sample by

    async def call(self, name, arguments=None, on_progress=None):
        with self.refusals():
            return self.result(await self.call_tool(name, arguments or {}, on_progress))

    async def text(self, tool, **arguments):
        """A call that must succeed with one text."""
        result = await self.call(tool, arguments)
        assert result.is_error is False, result
        (text,) = result.texts
        return text

    async def log(self, params):
        self.logs.append((params.level, params.logger, params.data))

    async def message(self, message):
        # Version 1 has what it hands over in an envelope.
        if type(getattr(message, "root", message)).__name__ == "ToolListChangedNotification":
            self.changes += 1

    @contextlib.contextmanager
    def refusals(self):
        try:
            yield
        except Protocol as e:
            raise Refused(e.error.code, e.error.message) from e

    async def cancel_running(self, name, arguments):
        """Begins a call and cancels it, in this client's way, when the tool has reported that it runs."""
        running = anyio.Event()

        async def begun(*_):
            running.set()

        async with anyio.create_task_group() as group:
            request_id = None if MCP_2 else self.next_request_id()

            async def call():
                with contextlib.suppress(Protocol):
                    await self.call_tool(name, arguments, begun)
                    raise AssertionError("the call was not cancelled")

            group.start_soon(call)
            with anyio.fail_after(TIMEOUT_S):
                await running.wait()
            if not MCP_2:
                await self.send_cancel(request_id)
            group.cancel_scope.cancel()  # version 2 tells the server by itself

    def next_request_id(self):
        """Version 1 has no public way to learn the id of a request."""
        return self.session._request_id


if MCP_2:
    from fastmcp.client.elicitation import ElicitResult as FastElicitResult
    from mcp import Client
    from mcp.shared.exceptions import MCPError as Protocol
    from mcp_types import CreateMessageResult, ElicitResult, TextContent

    class SDK(Peer):
        mode = "legacy"  # begins with initialize; "auto" asks for the newest revision first, which has no sessions

        @contextlib.asynccontextmanager
        async def open(self):
            async def ask(context, params):
                self.questions.append(params.message)
                action, content = self.answer
                return ElicitResult(action=action, content=content)

            async def sample(context, params):
                self.prompts.append(params.messages[0].content.text)
                return CreateMessageResult(role="assistant", content=TextContent(text="so be it"), model="none")

            async with Client(
                self.url,
                mode=self.mode,
                read_timeout_seconds=TIMEOUT_S,
                elicitation_callback=ask,
                sampling_callback=sample,
                logging_callback=self.log,
                message_handler=self.message,
            ) as self.client:
                self.session = self.client.session
                self.protocol = self.client.protocol_version
                self.server_name = self.client.server_info.name
                self.instructions = self.client.instructions
                yield self

        async def call_tool(self, name, arguments, on_progress):
            return await self.client.call_tool(name, arguments, progress_callback=on_progress)

        async def tools(self):
            return sorted(tool.name for tool in (await self.client.list_tools(cache_mode="bypass")).tools)

        async def set_level(self, level):
            await self.client.set_logging_level(level)

        async def prompt(self, name, arguments):
            with self.refusals():
                return (await self.client.get_prompt(name, arguments)).messages[0].content.text

        async def resource(self, uri):
            with self.refusals():
                return (await self.client.read_resource(uri)).contents[0].text

else:
    from fastmcp.client.elicitation import ElicitResult as FastElicitResult
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.exceptions import McpError as Protocol
    from mcp.types import (
        CancelledNotification,
        CancelledNotificationParams,
        ClientNotification,
        CreateMessageResult,
        ElicitResult,
        TextContent,
    )

    class SDK(Peer):
        @contextlib.asynccontextmanager
        async def open(self):
            async def ask(context, params):
                self.questions.append(params.message)
                action, content = self.answer
                return ElicitResult(action=action, content=content)

            async def sample(context, params):
                self.prompts.append(params.messages[0].content.text)
                return CreateMessageResult(
                    role="assistant", content=TextContent(type="text", text="so be it"), model="none"
                )

            async with (
                streamable_http_client(self.url) as (read, write, _),
                ClientSession(
                    read,
                    write,
                    read_timeout_seconds=timedelta(seconds=TIMEOUT_S),
                    elicitation_callback=ask,
                    sampling_callback=sample,
                    logging_callback=self.log,
                    message_handler=self.message,
                ) as self.session,
            ):
                hello = await self.session.initialize()
                self.protocol = hello.protocolVersion
                self.server_name = hello.serverInfo.name
                self.instructions = hello.instructions
                yield self

        async def call_tool(self, name, arguments, on_progress):
            return await self.session.call_tool(name, arguments, progress_callback=on_progress)

        async def send_cancel(self, request_id):
            params = CancelledNotificationParams(requestId=request_id, reason="changed my mind")
            await self.session.send_notification(
                ClientNotification(CancelledNotification(method="notifications/cancelled", params=params))
            )

        async def tools(self):
            return sorted(tool.name for tool in (await self.session.list_tools()).tools)

        async def set_level(self, level):
            await self.session.set_logging_level(level)

        async def prompt(self, name, arguments):
            with self.refusals():
                return (await self.session.get_prompt(name, arguments)).messages[0].content.text

        async def resource(self, uri):
            with self.refusals():
                return (await self.session.read_resource(uri)).contents[0].text


def _result(raw):
    """Version 2 spells its fields as Python does."""
    structured = raw.structured_content if MCP_2 else raw.structuredContent
    is_error = raw.is_error if MCP_2 else raw.isError
    return Result(
        texts=[block.text for block in raw.content if block.type == "text"],
        images=[
            (block.mime_type if MCP_2 else block.mimeType, block.data) for block in raw.content if block.type == "image"
        ],
        structured=structured,
        is_error=bool(is_error),
        error_type=(raw.meta or {}).get("openenv/error_type"),
    )


Peer.result = staticmethod(_result)


class Fast(Peer):
    """FastMCP's client: the same face over either version of the SDK."""

    @contextlib.asynccontextmanager
    async def open(self):
        import fastmcp

        async def ask(message, response_type, params, context):
            self.questions.append(message)
            action, content = self.answer
            return FastElicitResult(action=action, content=content)

        async def sample(messages, params, context):
            self.prompts.append(messages[0].content.text)
            return "so be it"

        async with fastmcp.Client(
            self.url,
            **({"mode": "legacy"} if MCP_2 else {}),
            timeout=TIMEOUT_S,
            elicitation_handler=ask,
            sampling_handler=sample,
            log_handler=self.log,
            message_handler=self.message,
        ) as self.client:
            self.session = self.client.session
            if MCP_2:
                self.protocol = self.client.protocol_version
                self.server_name = self.client.server_info.name
                self.instructions = self.client.instructions
            else:
                hello = self.client.initialize_result
                self.protocol = hello.protocolVersion
                self.server_name = hello.serverInfo.name
                self.instructions = hello.instructions
            yield self

    async def call_tool(self, name, arguments, on_progress):
        return await self.client.call_tool_mcp(name, arguments, progress_handler=on_progress)

    async def send_cancel(self, request_id):
        await self.client.cancel(request_id, "changed my mind")

    async def tools(self):
        return sorted(tool.name for tool in await self.client.list_tools())

    async def set_level(self, level):
        await self.client.set_logging_level(level)

    async def prompt(self, name, arguments):
        with self.refusals():
            return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def resource(self, uri):
        with self.refusals():
            return (await self.client.read_resource(uri))[0].text


PEERS = [SDK, Fast]
