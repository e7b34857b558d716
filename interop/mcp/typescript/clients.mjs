// What an MCP client does, by each door.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ErrorCode,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { CUTTER, cut, doors, eventually, http, sessions, TIMEOUT_MS, TOOLS } from "./server.mjs";

const MANY = 16;

// A Peer is a connection. The fields are what the server has sent unasked, and what it is answered.
class Peer {
  logs = [];
  changes = 0; // of the list of tools
  answer = { action: "accept", content: { name: "Ada" } }; // to a question
  questions = [];
  prompts = []; // to sample by

  async connect(url) {
    this.client = new Client({ name: "interop", version: "1.0.0" }, { capabilities: { elicitation: {}, sampling: {} } });
    this.client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      this.questions.push(params.message);
      return this.answer;
    });
    this.client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
      this.prompts.push(params.messages[0].content.text);
      return { role: "assistant", model: "none", content: { type: "text", text: "so be it" } };
    });
    this.client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      this.logs.push([params.level, params.logger, params.data]);
    });
    this.client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      this.changes++;
    });
    this.transport = new StreamableHTTPClientTransport(new URL(url));
    await this.client.connect(this.transport);
    return this;
  }

  // This client's close only hangs up; the goodbye is apart.
  async leave() {
    await this.transport.terminateSession();
    await this.client.close();
  }

  call(name, args = {}, options = {}) {
    return this.client.callTool({ name, arguments: args }, undefined, { timeout: TIMEOUT_MS, ...options });
  }

  // A call that must succeed with one text.
  async text(name, args) {
    const result = await this.call(name, args);
    assert.ok(!result.isError, JSON.stringify(result));
    assert.equal(result.content.length, 1);
    return result.content[0].text;
  }

  async tools() {
    return (await this.client.listTools()).tools.map((tool) => tool.name).sort();
  }
}

// Connects a client by a door, for as long as the body runs.
async function connected(door, body, base) {
  const way = await doors[door](base);
  const peer = await new Peer().connect(way.url);
  try {
    return await body(peer, way);
  } finally {
    await peer.leave();
    await way.done();
  }
}

const errorType = (result) => result._meta?.["openenv/error_type"];

// The server sends event ids where streams can be resumed. Asked by hand, since a client keeps them to itself.
async function sendsEventIds() {
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "by hand", version: "1" } };
  const { status, headers, text } = await http(
    "POST",
    CUTTER + "/mcp",
    { jsonrpc: "2.0", id: 1, method: "initialize", params: hello },
    { Accept: "application/json, text/event-stream" },
  );
  assert.equal(status, 200, text);
  await http("DELETE", CUTTER + "/mcp", undefined, {
    "Mcp-Session-Id": headers.get("Mcp-Session-Id"),
    "MCP-Protocol-Version": "2025-11-25",
  });
  return /^id:/m.test(text);
}

const resumable = await sendsEventIds();
const skip = !resumable && "the server sends no event ids, so a stream cannot be resumed";

for (const door of Object.keys(doors)) {
  const play = (body, base) => () => connected(door, body, base);
  const timeout = 60_000;

  describe(door, { timeout }, () => {
    test("initialize and list", play(async (peer) => {
      assert.equal(peer.transport.protocolVersion, "2025-11-25");
      assert.equal(peer.client.getServerVersion().name, "mcp_lab");
      assert.equal(peer.client.getInstructions(), "Try the tools.");
      assert.deepEqual(await peer.tools(), TOOLS);
    }));

    test("results", play(async (peer) => {
      assert.equal(await peer.text("echo", { text: "héllo 👋\n" }), "héllo 👋\n");

      await peer.tools(); // from now on the client holds results to the tools' schemas
      const placed = await peer.call("place");
      assert.deepEqual(placed.structuredContent, { x: 3, y: -4 });
      assert.deepEqual(placed.content.map((block) => JSON.parse(block.text)), [{ x: 3, y: -4 }]);

      const shown = await peer.call("picture");
      assert.equal(shown.structuredContent, undefined);
      assert.equal(shown.content.length, 1);
      assert.equal(shown.content[0].mimeType, "image/png");
      assert.deepEqual(Buffer.from(shown.content[0].data, "base64"), Buffer.from("\x89PNG\r\n\x1a\n", "latin1"));
    }));

    test("code", play(async (peer) => {
      await peer.tools();
      const ran = await peer.call("execute_code", { code: "print(echo(text='a'))\n[place()['x'], 2**40]" });
      assert.deepEqual(ran.structuredContent, { result: [3, 2 ** 40], stdout: "a\n", tool_calls: 2, error: null });
      const failed = await peer.call("execute_code", { code: "xs = [1]\nxs[3]" });
      assert.equal(failed.isError, true);
      assert.match(failed.content[0].text, /line 2/);
    }));

    test("errors", play(async (peer) => {
      await assert.rejects(peer.call("no_such_tool"), (error) => {
        assert.equal(error.code, ErrorCode.InvalidParams);
        return /no_such_tool/.test(error.message);
      });
      for (const [args, field] of [[{}, "text"], [{ text: 3 }, "text"], [{ text: "x", colour: 1 }, "colour"]]) {
        const refused = await peer.call("echo", args);
        assert.equal(refused.isError, true);
        assert.equal(errorType(refused), "invalid_args");
        assert.ok(refused.content[0].text.includes(field));
      }
      const failed = await peer.call("fail");
      assert.equal(failed.isError, true);
      assert.equal(failed.content[0].text, "not today");
      assert.equal(errorType(failed), undefined);

      const broken = await peer.call("error");
      assert.equal(broken.isError, true);
      assert.equal(broken.content[0].text, "out of paper");
      assert.equal(errorType(broken), "execution_error");

      assert.equal(await peer.text("echo", { text: "still here" }), "still here");
    }));

    test("prompt and resource", play(async (peer) => {
      const prompt = await peer.client.getPrompt({ name: "greet", arguments: { name: "Ada" } });
      assert.equal(prompt.messages[0].content.text, "Greet Ada.");
      await assert.rejects(peer.client.getPrompt({ name: "no_such_prompt" }), /no_such_prompt/);
      assert.equal((await peer.client.readResource({ uri: "lab://motto" })).contents[0].text, "measure twice");
      await assert.rejects(peer.client.readResource({ uri: "lab://nothing" }));
    }));

    test("progress", play(async (peer) => {
      const seen = [];
      const done = await peer.call("progress", { steps: 3 }, { onprogress: (at) => seen.push(at) });
      assert.equal(done.content[0].text, "3 steps, 0 reports unsent");
      assert.deepEqual(seen, [1, 2, 3].map((n) => ({ progress: n, total: 3, message: `step ${n}` })));
    }));

    test("a cancelled call ends in the handler", { timeout: 10_000 }, play(async (peer) => {
      const abort = new AbortController();
      const call = peer.call("slow", { ms: 25_000 }, { signal: abort.signal, onprogress: () => abort.abort("changed my mind") });
      await assert.rejects(call, /changed my mind/);
      // Calls of one session wait for one another, so that this is after the end of the slow one.
      assert.equal(await peer.text("cancelled"), "1");
    }));

    test("elicitation", play(async (peer) => {
      assert.equal(await peer.text("ask"), "Hello, Ada.");
      assert.deepEqual(peer.questions, ["What is your name?"]);
      for (const action of ["decline", "cancel"]) {
        peer.answer = { action };
        assert.equal(await peer.text("ask"), action);
      }
    }));

    test("sampling", play(async (peer) => {
      assert.equal(await peer.text("sample", { prompt: "Speak." }), "SO BE IT");
      assert.deepEqual(peer.prompts, ["Speak."]);
    }));

    test("log", play(async (peer) => {
      await peer.client.setLoggingLevel("warning");
      assert.equal(await peer.text("log", { text: "one" }), "logged");
      assert.deepEqual(peer.logs, [["warning", "lab", "one"]]);
      await peer.client.setLoggingLevel("debug");
      assert.equal(await peer.text("log", { text: "two" }), "logged");
      assert.deepEqual(peer.logs.slice(1), [["debug", "lab", "two"], ["warning", "lab", "two"]]);
    }));

    test("state is the session's", play(async (peer) => {
      for (const n of ["1", "2", "3"]) assert.equal(await peer.text("count"), n);
      await connected(door, async (other) => assert.equal(await other.text("count"), "1"));
    }));

    test("a new tool is announced", play(async (peer) => {
      await connected(door, async (other) => {
        // It grows after a while: what is announced before the client listens is lost.
        assert.equal(await peer.text("grow", { name: "sprout", ms: 300 }), "planted");
        await eventually(() => peer.changes > 0);
        assert.deepEqual(await peer.tools(), [...TOOLS, "sprout"].sort());
        assert.equal(await peer.text("sprout"), "I am sprout");
        assert.deepEqual(await other.tools(), TOOLS);
        assert.equal(other.changes, 0);
      });
    }));

    test("delete", async () => {
      const before = await sessions();
      const way = await doors[door]();
      const peer = await new Peer().connect(way.url);
      const mine = [...(await sessions()).values()].filter((session) => !before.has(session.session_id));
      assert.equal(mine.length, 1);
      assert.equal(mine[0].opened_by, way.openedBy);
      assert.equal(mine[0].agent, true);
      const id = peer.transport.sessionId;
      await peer.leave();
      await eventually(async () => {
        const left = (await sessions()).get(mine[0].session_id);
        return door === "plain" ? left === undefined : left.agent === false;
      });
      const after = await http("POST", way.url, { jsonrpc: "2.0", id: 1, method: "tools/list" }, {
        Accept: "application/json, text/event-stream", "Mcp-Session-Id": id,
      });
      assert.equal(after.status, 404);
      if (door === "handle") {
        const again = await new Peer().connect(way.url); // another client has the session as it was left
        assert.equal(await again.text("count"), "1");
        await again.leave();
      }
      await way.done();
    });

    test("many calls at once", play(async (peer) => {
      await Promise.all(Array.from({ length: MANY }, async (_, n) => {
        const steps = (n % 3) + 1;
        const seen = [];
        const [said, done] = await Promise.all([
          peer.text("echo", { text: String(n) }),
          peer.call("progress", { steps }, { onprogress: ({ progress }) => seen.push(progress) }),
        ]);
        assert.equal(said, String(n));
        assert.equal(done.content[0].text, `${steps} steps, 0 reports unsent`);
        assert.deepEqual(seen, Array.from({ length: steps }, (_, i) => i + 1));
      }));
    }));

    test("many sessions at once", async () => {
      let enter;
      const everybodyIsIn = new Promise((resolve) => (enter = resolve));
      let inside = 0;
      await Promise.all(Array.from({ length: MANY }, (_, n) => connected(door, async (peer) => {
        if (++inside === MANY) enter();
        await everybodyIsIn;
        let last;
        for (let i = 0; i <= n; i++) last = await peer.text("count");
        assert.equal(last, String(n + 1));
      })));
    });

    test("a call whose stream is cut is resumed", { skip, timeout: 20_000 }, play(async (peer) => {
      const seen = [];
      const done = await peer.call("progress", { steps: 4, ms: 300 }, {
        onprogress: async ({ progress }) => {
          seen.push(progress);
          if (progress === 1) assert.ok((await cut()) > 0);
        },
      });
      assert.equal(done.content[0].text, "4 steps, 0 reports unsent");
      assert.deepEqual(seen, [1, 2, 3, 4]);
      assert.equal(await peer.text("count"), "1"); // the session is the same
    }, CUTTER));

    test("what was announced while the stream was cut arrives", { skip, timeout: 20_000 }, play(async (peer) => {
      // One that arrives before the cut tells the client where to go on.
      await peer.text("grow", { name: "sprout" });
      await eventually(() => peer.changes === 1);
      await peer.text("grow", { name: "branch", ms: 200 });
      assert.ok((await cut()) > 0); // the client waits for a second before it reconnects
      await eventually(() => peer.changes === 2, 10_000);
    }, CUTTER));
  });
}
