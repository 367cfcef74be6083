/**
 * Recipes that curl cannot test: other protocols, certificates, and the log. examples.test.ts runs the others,
 * with the commands in their first lines.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createServer as createTlsServer, connect as tlsConnect } from "node:tls";
import { credentials, makeGenericClientConstructor, type requestCallback } from "@grpc/grpc-js";
import { WebSocket, WebSocketServer } from "ws";
import { parse } from "yaml";
import { appRoot } from "../../../src/base/app-root.ts";
import { invokeProgram } from "../../../src/cli/fixtures/invoke.ts";
import { tracegate } from "../../../src/main/commands.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";

const FOLDER = `${appRoot}examples/recipes/`;
const CERTS = `${FOLDER}certs/`;

/** The gateway of a recipe, on a free port, with these ports in place of those of its backends. */
function start(recipe: string, ports: Readonly<Record<number, number>>): Promise<LocalGateway> {
  let text = readFileSync(`${FOLDER}${recipe}.yaml`, "utf8");
  for (const [from, to] of Object.entries(ports)) text = text.replaceAll(`127.0.0.1:${from}`, `127.0.0.1:${to}`);
  text = text.replace("port: 3000", "port: 0").replaceAll("certs/", CERTS);
  return LocalGateway.start(parse(text) as object);
}

/** Port of a server that listens on a free one. */
function listening(server: { listen(port: number, done: () => void): unknown; address(): unknown }): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, () => resolve((server.address() as AddressInfo).port));
  });
}

test("why-403: the explanation has the rule, what it read, and what was not reached", async () => {
  const text = readFileSync(`${FOLDER}why-403.yaml`, "utf8");
  const lines = [...text.matchAll(/^# {3}tracegate (explain .*)$/gm)].map(([, words = ""]) => words);
  const results = await Promise.all(
    lines.map((line) => {
      const words = line.replaceAll("examples/", `${appRoot}examples/`).match(/'[^']*'|\S+/g) ?? [];
      return invokeProgram(
        tracegate,
        words.map((word) => word.replaceAll("'", "")),
      );
    }),
  );
  const [refused, passed, ...others] = results;
  assert.equal(others.length, 0);
  assert.equal(refused?.code, 1);
  assert.match(
    refused.stdout,
    /✗ policy authorization.*\n {4}✗ rule allow .*\n(?: {8}.* → .*\n)+– policy requestHeaderModifier {2}.*why-403\.yaml:21\n/,
  );
  assert.equal(passed?.code, 0);
  assert.match(passed.stdout, /^ {4}x-from: gateway$/m);
});

test("docs/recipes.md lists every recipe", () => {
  const page = readFileSync(`${appRoot}docs/recipes.md`, "utf8");
  const listed = [...page.matchAll(/\.\.\/examples\/recipes\/([\w-]+\.yaml)/g)].map(([, name]) => name);
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".yaml"));
  assert.deepEqual([...new Set(listed)].sort(), files.sort());
  assert.ok(files.length >= 20);
});

test("websocket: messages go both ways", async () => {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => socket.on("message", (data: Buffer) => socket.send(`echo ${data.toString()}`)));
  await using gateway = await start("websocket", { 9099: await listening(server) });
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port()}/socket`);
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      client.on("error", reject);
      client.on("open", () => client.send("hello"));
      client.on("message", (data: Buffer) => resolve(data.toString()));
    });
    assert.equal(answer, "echo hello");
  } finally {
    client.terminate();
    for (const socket of sockets.clients) socket.terminate();
    server.close();
  }
});

test("grpc: a client of gRPC calls a service through it", async () => {
  await using service = await GrpcServer.start({
    "/shop.Cart/Get": { unary: (message) => Buffer.from(`cart of ${message.toString()}`) },
  });
  await using gateway = await start("grpc", { 9099: service.port });
  const bytes = (value: Buffer): Buffer => value;
  const method = { path: "/shop.Cart/Get", requestStream: false, responseStream: false };
  const codec = {
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  };
  const Client = makeGenericClientConstructor({ get: { ...method, ...codec } }, "shop.Cart");
  const client = new Client(`127.0.0.1:${gateway.port()}`, credentials.createInsecure());
  try {
    const reply = await new Promise<Buffer | undefined>((resolve, reject) => {
      const done: requestCallback<Buffer> = (error, value) => (error === null ? resolve(value) : reject(error));
      client.makeUnaryRequest(method.path, bytes, bytes, Buffer.from("ann"), done);
    });
    assert.equal(reply?.toString(), "cart of ann");
  } finally {
    client.close();
  }
});

test("mtls: clients need a certificate of the CA, and the backend learns their name", async () => {
  const backend = createServer((request, response) => response.end(String(request.headers["x-client"])));
  await using gateway = await start("mtls", { 9099: await listening(backend) });
  const file = (name: string): string => readFileSync(`${CERTS}${name}.pem`, "utf8");
  const ca = file("ca");
  const own = { cert: file("client"), key: readFileSync(`${CERTS}client.key`, "utf8") };
  const ask = (identity: object): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { port: gateway.port(), host: "localhost", ca, agent: false, ...identity };
      const request = httpsRequest(options, async (response) => {
        resolve(`${response.statusCode} ${Buffer.concat(await response.toArray()).toString()}`);
      });
      request.on("error", reject).end();
    });
  try {
    assert.equal(await ask(own), "200 billing");
    await assert.rejects(ask({}), { code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" });
  } finally {
    backend.close();
  }
});

test("tls-passthrough: the server name selects the backend, whose certificate the client sees", async () => {
  const tls = { cert: readFileSync(`${CERTS}server.pem`), key: readFileSync(`${CERTS}server.key`) };
  const named = (name: string) => createTlsServer(tls, (socket) => socket.end(name).on("error", () => {}));
  const [shop, internal] = [named("shop"), named("internal")];
  await using gateway = await start("tls-passthrough", {
    9099: await listening(shop),
    9098: await listening(internal),
  });
  const read = (servername: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { port: gateway.port(), servername, ca: readFileSync(`${CERTS}ca.pem`), checkServerIdentity };
      const socket = tlsConnect(options, () => {
        socket.toArray().then((parts) => resolve(Buffer.concat(parts).toString()), reject);
      });
      socket.on("error", reject);
    });
  try {
    assert.equal(await read("shop.example"), "shop");
    assert.equal(await read("a.internal.example"), "internal");
    await assert.rejects(read("other.example"), { code: "ECONNRESET" });
  } finally {
    shop.close();
    internal.close();
  }
});

/** The certificate of the examples is for localhost. */
function checkServerIdentity(): undefined {}

test("tcp-proxy: bytes go both ways", async () => {
  await using backend = await RawUpstream.listen(async (peer) => peer.send(`<${await peer.take("\n")}>`));
  await using gateway = await start("tcp-proxy", { 9099: backend.port });
  const client = await RawPeer.connect(gateway.port());
  client.send("select 1\n");
  assert.equal(await client.take(">"), "<select 1\n>");
  client.socket.destroy();
});

test("access-log: fields are added and removed, and probes leave no line", async () => {
  const backend = createServer((_request, response) => response.end());
  await using gateway = await start("access-log", { 9099: await listening(backend) });
  try {
    const url = `http://127.0.0.1:${gateway.port()}`;
    await fetch(`${url}/healthz`);
    await fetch(`${url}/cart`, { headers: { "x-tenant": "acme" } });
    const lines = () => gateway.lines.filter(({ scope }) => scope === "request");
    await gateway.until(() => lines().length > 0, "the line");
    assert.equal(lines().length, 1);
    const [line] = lines();
    assert.deepEqual([line?.tenant, line?.slow, line?.protocol], ["acme", false, undefined]);
  } finally {
    backend.closeAllConnections();
    backend.close();
  }
});
