/** Real connections of TCP and TLS and their rehearsals, over generated configurations: equal lines in the access log. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket, connect as tcpConnect } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import { factsOfRequest, type RequestFacts } from "../../../src/rehearsal/facts.ts";
import { Rehearsal } from "../../../src/rehearsal/rehearsal.ts";
import { freePorts } from "../../helpers/free-ports.ts";
import type { LogLine } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { fc } from "../../helpers/property.ts";
import { CA_FILE, CLIENTS, SERVER } from "./certificates.ts";
import { lineOf, rehearsedLine } from "./lines.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: new Uint8Array(32) };
const tls = { cert: SERVER.certFile, key: SERVER.keyFile };

const route = fc.record({
  backends: fc.array(fc.record({ isGone: fc.constantFrom(false, false, true), weight: fc.constantFrom(1, 1, 3, 0) }), {
    maxLength: 2,
  }),
  hostnames: fc.constantFrom([], [], ["a.test"]),
});
const routes = fc.array(route, { minLength: 1, maxLength: 2 });
/** Listeners with TLS: undefined passes connections on. */
const listener = fc.record({
  hostname: fc.constantFrom("*.test", "a.test", "*"),
  tls: fc.constantFrom(undefined, tls, { ...tls, root: CA_FILE, clientCertificates: "required" }),
  routes,
});
export const connectionConfig = fc.record({
  rules: fc.constantFrom(
    [],
    [],
    ['source.address == "127.0.0.1"'],
    [{ deny: 'source.address == "127.0.0.1"' }],
    [{ require: "source.port > 0" }],
  ),
  plain: routes,
  secured: fc.uniqueArray(listener, { minLength: 1, maxLength: 2, selector: ({ hostname }) => hostname }),
});
export const connection = fc.record({
  url: fc.constantFrom("tcp://any", "tls://a.test", "tls://b.test", "tls://c.other"),
  body: fc.constantFrom("", "hello"),
  certificate: fc.constantFrom(undefined, CLIENTS.good, CLIENTS.expired),
});

type ConnectionConfig = typeof connectionConfig extends fc.Arbitrary<infer Value> ? Value : never;
type Connection = typeof connection extends fc.Arbitrary<infer Value> ? Value : never;

/** A gateway and a backend that closes each connection after its first bytes, as that of a rehearsal does. */
export class ConnectedGateway {
  readonly #backend: Server;
  readonly #gateway: LocalGateway;
  readonly #ports: { readonly tcp: number; readonly tls: number; readonly gone: number };

  private constructor(backend: Server, gateway: LocalGateway, [tcp = 0, tls = 0, gone = 0]: readonly number[]) {
    this.#backend = backend;
    this.#gateway = gateway;
    this.#ports = { tcp, tls, gone };
  }

  static async start(): Promise<ConnectedGateway> {
    const backend = createServer({ allowHalfOpen: true }, (socket) => {
      socket.once("data", () => socket.end()).once("end", () => socket.end());
      socket.on("error", () => {});
    });
    await once(backend.listen(0, "127.0.0.1"), "listening");
    return new ConnectedGateway(backend, await LocalGateway.start({ binds: [] }), await freePorts(3));
  }

  /** Connects and rehearses; the first line that no rehearsal has, with those that they have. */
  async compare(shape: ConnectionConfig, connections: readonly Connection[]): Promise<object | undefined> {
    const config = this.#config(shape);
    const rehearsal = new Rehearsal(await this.#gateway.reconfigure(config), SETTINGS);
    try {
      for (const each of connections) {
        const facts = factsOfRequest({
          ...each,
          headers: [],
          certificate: each.url.startsWith("tls") ? each.certificate : undefined,
        });
        const bind = rehearsal.bindFor(facts.url);
        const rehearsed = (await rehearse(rehearsal, facts, bind, this.#ports.gone)).map(({ record }) =>
          withoutBytes(rehearsedLine(record)),
        );
        const real = withoutBytes(lineOf(await this.#connect(facts)));
        if (!rehearsed.some((line) => isDeepStrictEqual(line, real)))
          return { config, connection: each, real, rehearsed };
      }
      return undefined;
    } finally {
      rehearsal.close();
    }
  }

  #config({ rules, plain, secured }: ConnectionConfig): object {
    const { tcp, tls, gone } = this.#ports;
    const { port } = this.#backend.address() as AddressInfo;
    const routesOf = (list: ConnectionConfig["plain"], withNames: boolean) =>
      list.map(({ backends, hostnames }) => ({
        ...(withNames && { hostnames }),
        backends: backends.map(({ isGone, weight }, i) => ({
          host: `${i === 0 ? "127.0.0.1" : "localhost"}:${isGone ? gone : port}`,
          // A rehearsal without a gateway does not know the addresses of names.
          ...(i > 0 && { dns: { mode: "first" } }),
          weight,
        })),
      }));
    return {
      ...(rules.length > 0 && { frontendPolicies: { networkAuthorization: { rules } } }),
      binds: [
        { port: tcp, listeners: [{ protocol: "TCP", tcpRoutes: routesOf(plain.slice(0, 1), false) }] },
        {
          port: tls,
          listeners: secured.map(({ hostname, tls, routes }) => ({
            protocol: "TLS",
            hostname,
            ...(tls !== undefined && { tls }),
            tcpRoutes: routesOf(routes, true),
          })),
        },
      ],
    };
  }

  /** The line about a connection. */
  async #connect({ serverName, body, certificate }: RequestFacts): Promise<LogLine> {
    const gateway = this.#gateway;
    gateway.takeLines();
    const socket: Socket =
      serverName === undefined
        ? tcpConnect({ port: this.#ports.tcp, host: "127.0.0.1", allowHalfOpen: true })
        : tlsConnect({
            ...{ port: this.#ports.tls, host: "127.0.0.1", servername: serverName, rejectUnauthorized: false },
            ...(certificate !== undefined && { cert: certificate, key: certificate }),
          });
    socket.on("error", () => {}).resume();
    socket.once(serverName === undefined ? "connect" : "secureConnect", () => {
      if (body.length > 0) socket.write(body);
      socket.end();
    });
    let lines: readonly LogLine[] = [];
    await gateway.until(() => {
      lines = gateway.takeLines();
      return lines.length > 0;
    }, "the line of the connection");
    socket.destroy();
    return lines[0] ?? {};
  }

  async close(): Promise<void> {
    this.#backend.close();
    await this.#gateway[Symbol.asyncDispose]();
  }
}

/** The outcomes, if nothing listens on the port `gone`. */
async function rehearse(rehearsal: Rehearsal, facts: RequestFacts, bind: Rehearsal["binds"][number], gone: number) {
  const { outcomes } = await rehearsal.outcomes(facts, bind, {});
  const endpoints = outcomes
    .flatMap(({ record }) => record?.endpoint ?? [])
    .filter((name) => name.endsWith(`:${gone}`));
  if (endpoints.length === 0) return outcomes;
  const assumed = Object.fromEntries(endpoints.map((name) => [`response@${name}`, "refused" as const]));
  return (await rehearsal.outcomes(facts, bind, assumed)).outcomes;
}

/** What a handshake that is passed on weighs differs from client to client. */
function withoutBytes({ "bytes.sent": _bytes, ...line }: Readonly<Record<string, unknown>>): object {
  return line;
}

let gateway: ConnectedGateway | undefined;

/** One configuration with four connections; for `npm run fuzz`. */
export async function playConnections(seed: number): Promise<object | undefined> {
  gateway ??= await ConnectedGateway.start();
  const cases = fc.tuple(connectionConfig, fc.array(connection, { minLength: 4, maxLength: 4 }));
  const [drawn] = fc.sample(cases, { seed, numRuns: 1 });
  return drawn && gateway.compare(...drawn);
}
