import assert from "node:assert/strict";
import { on, once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { OwnSockets } from "../base/own-sockets.ts";
import { Egress, NO_LOOKUP_RULES } from "../net/egress.ts";
import { fetchThrough } from "../upstream/callouts/fetch.ts";
import { Resolver } from "../upstream/resolve/resolver.ts";
import { callHook } from "./dns-hook.ts";

const RECORD = { name: "_acme-challenge.shop.example.", value: "digest" };
const FETCH = fetchThrough(
  new Resolver("All", new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, new OwnSockets())),
);
const present = (hook: Parameters<typeof callHook>[0], signal = new AbortController().signal) =>
  callHook(hook, "present", RECORD, FETCH, signal);

test("an abort ends a program, and a call whose server does not respond", async () => {
  const stop = new AbortController();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/`;
  // The program tells the server that it runs.
  const program = `fetch(${JSON.stringify(url)} + process.argv.slice(1).join("/"))`;
  const calls = [present({ url }, stop.signal), present({ command: [process.execPath, "-e", program] }, stop.signal)];
  const settled = Promise.allSettled(calls);
  const closed: Promise<unknown>[] = [];
  const asked: string[] = [];
  for await (const [request] of on(server, "request") as AsyncIterable<[IncomingMessage]>) {
    asked.push(request.url ?? "");
    closed.push(once(request.socket, "close"));
    if (asked.length === 2) break;
  }
  assert.deepEqual(asked.sort(), ["/hook/present", `/hook/present/${RECORD.name}/${RECORD.value}`]);
  stop.abort();
  for (const { status } of await settled) assert.equal(status, "rejected");
  await Promise.all(closed);
  server.close();
});

test("an abort ends what a program has started, and does not wait for it", async () => {
  const stop = new AbortController();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // The inner process has the outputs of the hook, and tells the server its number.
  const inner = `setInterval(() => {}, 1000); fetch(${JSON.stringify(url)} + "/" + process.pid)`;
  const program = `require("node:child_process").spawnSync(process.execPath, ["-e", ${JSON.stringify(inner)}], { stdio: "inherit" })`;
  const call = assert.rejects(present({ command: [process.execPath, "-e", program] }, stop.signal), /was ended/);
  const [request] = (await once(server, "request")) as [IncomingMessage];
  const gone = once(request.socket, "close");
  stop.abort();
  await call;
  await gone;
  server.close();
});

test("what a program prints when it fails is in the error, as is the status of a server", async () => {
  const program = 'process.stderr.write("no such zone"); process.exit(3)';
  await assert.rejects(present({ command: [process.execPath, "-e", program] }), /ended with 3: no such zone$/);
  await assert.rejects(present({ command: ["/no/such/hook"] }), /the DNS hook \/no\/such\/hook ended with ENOENT/);
  const server = createServer((_request, response) => response.writeHead(403).end("secret")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await assert.rejects(present({ url, authorization: "Bearer pl4nted" }), {
    message: "the DNS hook responds to present with status 403",
  });
  server.close();
});
