// The server under test: its addresses, its trainers' door, and what it tells its operators.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

export const URL_ = process.env.OPENENV_URL;
export const CUTTER = process.env.OPENENV_CUTTER;
export const TIMEOUT_MS = 20_000;

export const TOOLS = [
  "ask", "cancelled", "count", "echo", "error", "execute_code", "fail", "grow", "log", "picture", "place", "progress", "sample", "slow",
];

export async function http(method, url, body, headers = {}) {
  const answer = await fetch(url, {
    method,
    body: body && JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

// A JSON-RPC request without a handshake.
async function rpc(url, method, params = {}) {
  const { text } = await http("POST", url, { jsonrpc: "2.0", id: 1, method, params });
  const answer = JSON.parse(text);
  assert.ok("result" in answer, text);
  return answer.result;
}

// What the server tells its operators of its sessions, by their ids.
export async function sessions() {
  const { text } = await http("GET", process.env.OPENENV_CONTROL + "/sessions");
  return new Map(JSON.parse(text).sessions.map((session) => [session.session_id, session]));
}

// Cuts all connections that are open through the cutter.
export async function cut() {
  const { text } = await http("POST", process.env.OPENENV_CUTTER_CONTROL + "/cut");
  return Number(text);
}

// Waits for what comes without an answer to wait for.
export async function eventually(condition, withinMs = 5000) {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `still not so after ${withinMs} ms: ${condition}`);
    await sleep(20);
  }
}

// The ways to a session of an MCP client's own. Each returns an address and what gives the session back.
export const doors = {
  // The client opens a session by its initialize, and ends it by its DELETE.
  plain: async (base = URL_) => ({ url: base + "/mcp", openedBy: "initialize", done: async () => {} }),

  // A trainer has the session and gives the client a handle on it.
  handle: async (base = URL_) => {
    const { session_id } = await rpc(base + "/mcp", "openenv/session/create");
    const { handle, url } = await rpc(base + "/mcp", "openenv/session/agent", { session_id });
    assert.equal(url, `${base}/mcp/${handle}`);
    const done = async () => assert.equal((await rpc(base + "/mcp", "openenv/session/close", { session_id })).closed, true);
    return { url, openedBy: "create", session_id, done };
  },
};
