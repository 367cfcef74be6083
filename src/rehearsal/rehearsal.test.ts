import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { test } from "node:test";
import { irOf } from "../../test/helpers/supervisor.ts";
import { requestOf } from "./curl.ts";
import { factsOfRequest } from "./facts.ts";
import { Rehearsal } from "./rehearsal.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };

test("a rehearsal opens no socket and looks up no name", async () => {
  const host = { host: "backend.invalid:80" };
  const grpc = { ...host, protocol: { grpc: {} } };
  const policies = {
    extAuthz: grpc,
    remoteRateLimit: {
      ...host,
      domain: "d",
      descriptors: [{ entries: [{ key: "k", value: '"v"' }], type: "requests" }],
    },
    extProc: host,
    requestMirror: { backend: host, percentage: 1 },
    retry: { attempts: 2, backoff: "1ms", codes: [503] },
  };
  const routes = [{ name: "all", policies, backends: [host, { host: "127.0.0.1:9", weight: 2 }] }];
  const rehearsal = new Rehearsal(irOf({ binds: [{ port: 80, listeners: [{ routes }] }] }), SETTINGS);
  const opened: string[] = [];
  const hook = createHook({
    init(_id, type) {
      if (/^(TCP|UDP|PIPE|TLS|GETADDRINFO|QUERY)/.test(type)) opened.push(type);
    },
  });
  try {
    hook.enable();
    const facts = factsOfRequest(requestOf(["POST", "http://a/", "-d", "k=v"]));
    for (const assumed of [{}, { response: { status: 503 } }]) {
      const { outcomes } = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), assumed);
      assert.ok(outcomes.length > 3);
      assert.ok(outcomes.some(({ sent }) => sent.length > 0));
    }
  } finally {
    hook.disable();
    rehearsal.close();
  }
  assert.deepEqual(opened, []);
});

test("what a rehearsal assumes of an endpoint does not outlast it", async () => {
  const health = { eviction: { duration: "1h" } };
  const routes = [{ name: "all", backends: [{ host: "127.0.0.1:9", policies: { health } }] }];
  const rehearsal = new Rehearsal(irOf({ binds: [{ port: 80, listeners: [{ routes }] }] }), SETTINGS);
  try {
    const facts = factsOfRequest(requestOf(["http://a/"]));
    const [bind] = rehearsal.binds;
    assert.ok(bind !== undefined);
    const kinds = async (assumed: object): Promise<unknown[]> => {
      const {
        outcomes: [outcome],
      } = await rehearsal.outcomes(facts, bind, assumed);
      return (outcome?.events ?? []).flatMap(({ message }) => (message.type === "policy" ? [message.kind] : []));
    };
    assert.deepEqual(await kinds({ response: { status: 503 } }), ["health"]);
    assert.deepEqual(await kinds({}), []);
  } finally {
    rehearsal.close();
  }
});
