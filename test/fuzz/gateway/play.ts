/**
 * The rules that are fuzzed: whatever clients and backends do, every request ends when its client is gone, nothing stays open or
 * counted, and no request or connection fails by a defect of the gateway. Clients of both versions send random requests to a data
 * plane in this process, in plaintext and inside TLS, on routes with the policies that work on bodies, to backends of both versions
 * that respond at random. Then all clients reset their connections. Real sockets: a seed leads to similar games, not always to the same one.
 */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { TestCa } from "../../helpers/certificates.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { Dice } from "../dice.ts";
import { startBackend } from "./backends.ts";
import { sendHttp1, sendHttp2 } from "./clients.ts";

const CLIENTS = 8;
/** Milliseconds that the clients of a game stay. */
const LENGTH_MS = 100;
/** Milliseconds after which what was to end will not. */
const PATIENCE_MS = 5000;

const COMPRESSION = { compression: { contentTypes: ["text/*", "application/*"], minSize: 0 } };
const RETRY = { retry: { attempts: 2, codes: [503], backoff: "1ms" } };
const POLICIES: Readonly<Record<string, object>> = {
  "/plain": {},
  "/compression": COMPRESSION,
  "/web": { grpcWeb: {} },
  "/buffer": { buffer: { request: { maxBytes: 20_000 }, response: { maxBytes: 100_000 } } },
  "/retry": RETRY,
  "/timeout": { timeout: { requestTimeout: "50ms" } },
  "/session": { sessionPersistence: {} },
  "/all": { ...COMPRESSION, ...RETRY, grpcWeb: {} },
};
const PATHS = Object.keys(POLICIES).flatMap((path) => [`${path}/1`, `${path}/2`]);

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Field {
  readonly gateway: LocalGateway;
  readonly port: number;
  readonly tlsPort: number;
}

let dice = new Dice(0);
let started: Promise<Field> | undefined;

async function start(): Promise<Field> {
  const backends = await Promise.all(
    ([1, 2] as const).map(async (version) => ({
      host: `127.0.0.1:${await startBackend(version, () => dice)}`,
      policies: { http: { version: version === 1 ? "HTTP/1.1" : "HTTP/2.0" } },
    })),
  );
  const routes = Object.entries(POLICIES).flatMap(([path, policies]) =>
    backends.map((backend, i) => ({
      matches: [{ path: { pathPrefix: `${path}/${i + 1}` } }],
      policies,
      backends: [backend],
    })),
  );
  const tlsPort = await freePort();
  using authority = new TestCa();
  const { certFile: cert, keyFile: key } = authority.issue("localhost");
  const gateway = await LocalGateway.start({
    binds: [
      { port: 0, listeners: [{ protocol: "HTTP", routes }] },
      { port: tlsPort, listeners: [{ protocol: "HTTPS", tls: { cert, key }, routes }] },
    ],
  });
  return { gateway, port: gateway.port("bind/0"), tlsPort };
}

/** Plays the game of `seed`; returns what is wrong, if anything is. */
export async function playGateway(seed: number): Promise<object | undefined> {
  started ??= start();
  const field = await started;
  const { gateway } = field;
  dice = new Dice(seed);
  const clients = Array.from({ length: CLIENTS }, () => client(field));
  await pause(LENGTH_MS);
  for (const socket of clients) socket.resetAndDestroy();
  const deadline = performance.now() + PATIENCE_MS;
  while (openThings(gateway) !== undefined && performance.now() < deadline) await pause(5);
  const open = openThings(gateway);
  if (open !== undefined) return open;
  const defects = gateway.takeLines().filter(({ level }) => level === "error");
  return defects.length > 0 ? { defects } : undefined;
}

/** Returns the TCP connection of a client. */
function client({ port, tlsPort }: Field): Socket {
  const isTls = dice.chance(0.4);
  const isHttp2 = dice.chance(0.7);
  const send = isHttp2 ? sendHttp2 : sendHttp1;
  const carrier = connect({ port: isTls ? tlsPort : port, host: "127.0.0.1", noDelay: true });
  const socket = isTls
    ? connectTls({
        socket: carrier,
        servername: "localhost",
        rejectUnauthorized: false,
        ALPNProtocols: [isHttp2 ? "h2" : "http/1.1"],
      })
    : carrier;
  for (const each of new Set([carrier, socket])) each.on("error", () => {});
  socket.on(isTls ? "secureConnect" : "connect", () => {
    send(socket, PATHS, dice);
    if (dice.chance(0.2)) carrier.resetAndDestroy();
  });
  return carrier;
}

/** Connections of clients and calls to backends; undefined = nothing is open. */
function openThings(gateway: LocalGateway): object | undefined {
  const connections = gateway.tasks().flatMap((bind) => bind.connections);
  const calls = gateway.endpoints().filter(({ pending }) => pending > 0);
  return connections.length > 0 || calls.length > 0 ? { connections, calls } : undefined;
}
