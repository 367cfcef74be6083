/** Real requests and their rehearsals, over generated configurations: for a property test and for `npm run fuzz -- explain`. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { requestOf } from "../../../src/rehearsal/curl.ts";
import { factsOfRequest } from "../../../src/rehearsal/facts.ts";
import { type Outcome, Rehearsal } from "../../../src/rehearsal/rehearsal.ts";
import { type AccessRecord, recordFields } from "../../../src/telemetry/access-record.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { fc } from "../../helpers/property.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { irOf } from "../../helpers/supervisor.ts";
import { configuration, type Outside, type Shape, userConfig, type Written, written } from "./cases.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: new Uint8Array(32) };
interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
}

/** A real outcome that is none of those of the rehearsal. */
export interface Difference {
  readonly config: object;
  readonly request: Written;
  readonly real: object;
  readonly rehearsed: readonly object[];
}

/** A gateway and its backend; the authorization service denies paths below `/b`. */
export class ExplainedGateway {
  /** Requests so far, those that match a route, those without a service or split, and among them those with one outcome. */
  readonly counts = { all: 0, routed: 0, closed: 0, single: 0 };
  readonly #heads: Sent[];
  readonly #servers: readonly Server[];
  readonly #outside: Outside;
  readonly #gateway: LocalGateway;

  private constructor(heads: Sent[], servers: readonly Server[], outside: Outside, gateway: LocalGateway) {
    this.#heads = heads;
    this.#servers = servers;
    this.#outside = outside;
    this.#gateway = gateway;
  }

  static async start(): Promise<ExplainedGateway> {
    const heads: Sent[] = [];
    const backend = createServer((request: IncomingMessage, response) => {
      heads.push({ method: request.method ?? "", target: request.url ?? "", headers: request.rawHeaders });
      request.resume();
      response.sendDate = false;
      response.writeHead(200, { "content-length": 0 }).end();
    });
    const authorizer = createServer((request, response) => {
      request.resume();
      response.sendDate = false;
      response.writeHead(request.url?.startsWith("/b") === true ? 403 : 200, { "content-length": 0 }).end();
    });
    const servers = [backend, authorizer];
    await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))));
    const portOf = (server: Server): number => (server.address() as AddressInfo).port;
    const outside = { backend: portOf(backend), authorizer: portOf(authorizer) };
    const empty = userConfig({ policies: {}, routes: [], narrow: [], group: [] }, outside);
    return new ExplainedGateway(heads, servers, outside, await LocalGateway.start(empty));
  }

  /** Sends the requests and rehearses them; the first difference, if there is one. */
  async compare(shape: Shape, requests: readonly Written[]): Promise<Difference | undefined> {
    const config = userConfig(shape, this.#outside);
    await this.#gateway.reconfigure(config);
    const rehearsal = new Rehearsal(irOf(config), SETTINGS);
    const isOpen = /"(extAuthz)"|"weight":3/.test(JSON.stringify(config));
    try {
      for (const request of requests) {
        const difference = await this.#compareOne(rehearsal, request, isOpen);
        if (difference !== undefined) return { config, request, ...difference };
      }
      return undefined;
    } finally {
      rehearsal.close();
    }
  }

  async #compareOne(
    rehearsal: Rehearsal,
    { method, host, target, headers, body }: Written,
    isOpen: boolean,
  ): Promise<Pick<Difference, "real" | "rehearsed"> | undefined> {
    const gateway = this.#gateway;
    const heads = this.#heads;
    const options = headers.flatMap((each) => ["-H", each]);
    const facts = factsOfRequest(
      requestOf([method, `http://${host}${target}`, ...options, ...(body === "" ? [] : ["-d", body])]),
    );
    const { outcomes } = await rehearsal.outcomes(facts, rehearsal.bindFor(new URL("http://any/")), {});
    heads.length = 0;
    const lines = gateway.lines.length;
    const client = await RawPeer.connect(gateway.port());
    client.send(`${facts.head}${facts.body}`);
    const response = await client.message();
    await gateway.until(() => gateway.lines.length > lines, "the line of the request");
    client.socket.destroy();
    const line = lineOf(gateway.lines.at(-1) ?? {});
    const real = {
      status: statusOf(response),
      headers: stable(response.fields.flatMap(partsOf)),
      body: response.body,
      line,
      sent: heads.map((each) => ({ ...each, headers: stable(each.headers) })),
    };
    this.counts.all++;
    if (line.route !== undefined) this.counts.routed++;
    if (!isOpen) this.counts.closed++;
    if (!isOpen && outcomes.length === 1) this.counts.single++;
    const rehearsed = outcomes.map(comparable);
    return rehearsed.some((each) => isDeepStrictEqual(each, real)) ? undefined : { real, rehearsed };
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close().closeAllConnections();
    await this.#gateway[Symbol.asyncDispose]();
  }
}

/** Fields whose values differ from run to run; tokens were taken before. */
const CHANGING = new Set(["date", "x-request-id", "cdn-loop", "x-ratelimit-remaining", "x-ratelimit-reset"]);
const OF_CONNECTION = new Set(["connection", "keep-alive"]);

/** The fields without what differs from run to run. */
function stable(headers: readonly string[]): string[] {
  const lines: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? "").toLowerCase();
    if (OF_CONNECTION.has(name)) continue;
    const changes = CHANGING.has(name);
    lines.push(changes ? name : `${name}: ${headers[i + 1]}`);
  }
  return lines;
}

function comparable({ record, sent, received }: Outcome): object {
  const text = received.toString("latin1");
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [, ...fields] = head.split("\r\n");
  const headers = stable(fields.flatMap(partsOf));
  return {
    status: record?.status,
    headers,
    body: rest.join("\r\n\r\n"),
    line: lineOf(recordFields(record as AccessRecord)),
    sent: sent.map((each) => ({ ...each, headers: stable(each.headers) })),
  };
}

/** The line of the access log without what differs from run to run: listener, route, endpoint, status, error, lengths and more. */
function lineOf(line: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { time, level, scope, message, "request.id": _id, "src.addr": _client, duration, ...others } = line;
  return JSON.parse(JSON.stringify(others)) as Readonly<Record<string, unknown>>;
}

function partsOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 2)];
}

let gateway: ExplainedGateway | undefined;

/** One configuration with eight requests; for `npm run fuzz`. */
export async function playExplain(seed: number): Promise<object | undefined> {
  gateway ??= await ExplainedGateway.start();
  const cases = fc.tuple(configuration, fc.array(written, { minLength: 8, maxLength: 8 }));
  const [drawn] = fc.sample(cases, { seed, numRuns: 1 });
  return drawn && gateway.compare(...drawn);
}
