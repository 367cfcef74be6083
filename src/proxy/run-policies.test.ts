import assert from "node:assert/strict";
import { test } from "node:test";
import { type CompiledChain, NO_POLICIES } from "../policies/compile.ts";
import type { CompiledPolicy } from "../policies/types.ts";
import type { Exchange } from "./exchange.ts";
import { responsePolicies } from "./run-policies.ts";

/** What of an exchange the response policies use, with a policy that waits before one that must see an open exchange. */
function waitingExchange() {
  const ran: string[] = [];
  const answered = Promise.withResolvers<void>();
  const policies: CompiledPolicy[] = [
    { kind: "extProc", config: {}, onResponse: () => answered.promise },
    { kind: "transformations", config: {}, onResponse: () => void ran.push("transformations") },
  ] as unknown as CompiledPolicy[];
  const chain: CompiledChain = { ...NO_POLICIES, response: policies };
  const exchange = {
    closed: false,
    selected: { route: {}, routePolicies: chain, backend: undefined, listener: undefined },
    responseSide: { head: { status: 200, headers: [] }, hold() {} },
    call: { answeredAt: 1 },
    trace: undefined,
  };
  const done = responsePolicies(exchange as unknown as Exchange);
  return { exchange, ran, answer: answered.resolve, done };
}

test("response policies continue after one that has waited", async () => {
  const { ran, answer, done } = waitingExchange();
  answer();
  await done;
  assert.deepEqual(ran, ["transformations"]);
});

test("response policies stop when the exchange has closed while one of them waited", async () => {
  const { exchange, ran, answer, done } = waitingExchange();
  exchange.closed = true;
  answer();
  await done;
  assert.deepEqual(ran, []);
});
