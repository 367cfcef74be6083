/** Real requests and their rehearsals, over generated configurations: for a property test and for `npm run fuzz -- explain`. */
import { isDeepStrictEqual } from "node:util";
import { createBuckets } from "../../../src/policies/token-buckets/buckets.ts";
import type { CompiledBind } from "../../../src/proxy/compile/compiled.ts";
import type { AssumedResponse, Assumptions } from "../../../src/rehearsal/assumptions.ts";
import { BadFacts, factsOfRequest, type RequestFacts } from "../../../src/rehearsal/facts.ts";
import { explainHappened } from "../../../src/rehearsal/happened.ts";
import type { Outcome } from "../../../src/rehearsal/outcome.ts";
import { Rehearsal } from "../../../src/rehearsal/rehearsal.ts";
import { freePort } from "../../helpers/free-ports.ts";
import type { LogLine } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { fc } from "../../helpers/property.ts";
import { Backends, type Sent } from "./backends.ts";
import { configuration, type Outside, type Shape, userConfig, type Written, written } from "./cases.ts";
import { NOTHING, send } from "./client.ts";
import { lineOf, rehearsedLine } from "./lines.ts";
import { type Behavior, StubServices } from "./services.ts";

/** Of the gateway, and seen by its rehearsals. */
const buckets = createBuckets();
const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: new Uint8Array(32), buckets };
/** More than any request gets. */
const ATTEMPTS = 9;
const FAILURE = { status: 503 };
const TALK = { headers: { "content-type": "text/plain", "x-b": "3" }, body: "hello, hello, hello" };
const RESPONSES: Readonly<Record<Written["backend"], readonly AssumedResponse[]>> = {
  works: [],
  talks: Array.from({ length: ATTEMPTS }, () => TALK),
  fails: Array.from({ length: ATTEMPTS }, () => FAILURE),
  recovers: [FAILURE],
};

/** Configurations of which a request's record is compared: rehearsals of records have many outcomes. */
const RECALLED = 250;
/** Policies that read fields themselves or make keys of them, not by conditions that a rehearsal could leave open. */
const READ_FIELDS: ReadonlySet<string> = new Set(["cors", "csrf", "remoteRateLimit"]);

/** A real outcome that is none of those of the rehearsal. */
export interface Difference {
  readonly config: object;
  readonly request: Written;
  readonly real: object;
  readonly rehearsed: readonly object[];
}

/** A gateway, its backends and the services of its policies. */
export class ExplainedGateway {
  /**
   * Requests so far, those that match a route, those that depend on no service or split, and among them those with one outcome; rehearsals
   * of records.
   */
  #compared = 0;
  readonly counts = { all: 0, routed: 0, closed: 0, single: 0, recalled: 0 };
  readonly #backends: Backends;
  readonly #services: StubServices;
  readonly #outside: Outside;
  readonly #gateway: LocalGateway;

  private constructor(backends: Backends, services: StubServices, outside: Outside, gateway: LocalGateway) {
    this.#backends = backends;
    this.#services = services;
    this.#outside = outside;
    this.#gateway = gateway;
  }

  static async start(): Promise<ExplainedGateway> {
    const backends = await Backends.start();
    const outside = { backends: backends.ports, tls: await freePort() };
    const empty = userConfig(
      { policies: {}, routes: [], narrow: [], group: [], clientCertificates: undefined },
      outside,
    );
    const gateway = await LocalGateway.start(empty, { buckets });
    return new ExplainedGateway(backends, await StubServices.start(), outside, gateway);
  }

  /** Sends the requests and rehearses them; the first difference, if there is one. */
  async compare(shape: Shape, requests: readonly Written[]): Promise<Difference | undefined> {
    const config = JSON.parse(this.#services.addressed(JSON.stringify(userConfig(shape, this.#outside)))) as object;
    const rehearsal = new Rehearsal(await this.#gateway.reconfigure(config), SETTINGS);
    this.#compared++;
    try {
      for (const [index, request] of requests.entries()) {
        const isRecalled = index === 0 && this.#compared <= RECALLED;
        const difference =
          (await this.#compareOne(rehearsal, request)) ??
          (isRecalled ? await this.#compareRecord(rehearsal, config, request) : undefined);
        if (difference !== undefined) return { config, request, ...difference };
      }
      return undefined;
    } finally {
      rehearsal.close();
    }
  }

  async #compareOne(
    rehearsal: Rehearsal,
    { client: { scheme, ...client }, host, headers, backend, services, ...others }: Written,
  ): Promise<Pick<Difference, "real" | "rehearsed"> | undefined> {
    const gateway = this.#gateway;
    const backends = this.#backends;
    const { body, method = others.method, target = others.target, fields: about = [] } = others.message;
    const fields = [...headers, ...about].map((line) => line.split(": ") as [string, string]);
    const url = `${scheme}://${host}${target}`;
    const facts = factsOfRequest({ url, method, headers: fields, body, ...client });
    const bind = rehearsal.bindFor(new URL(`${scheme}://any/`));
    const outcomes = await rehearse(rehearsal, facts, bind, backend, services, backends.ports);
    this.#services.behavior = services;
    backends.sent.length = 0;
    backends.responses = [...RESPONSES[backend]];
    gateway.takeLines();
    const [response, close] = await send(scheme === "https" ? this.#outside.tls : gateway.port(), facts);
    let lines: readonly LogLine[] = [];
    await gateway.until(() => {
      lines = gateway.takeLines();
      return lines.length > 0;
    }, "the line of the request");
    close();
    const line = lineOf(lines[0] ?? {});
    const real: Compared = {
      ...response,
      headers: stable(response.headers),
      line,
      sent: backends.sent.map((each) => ({ ...each, headers: stable(each.headers) })),
    };
    this.counts.all++;
    if (line.route !== undefined) this.counts.routed++;
    if (backend !== "recovers" && !outcomes.some(isOpen)) {
      this.counts.closed++;
      if (outcomes.length === 1) this.counts.single++;
    }
    const rehearsed = outcomes.map(comparable);
    // When a service fails that looks at a body, and so whether the body passes, is a matter of time.
    const isRace = services.extProc === "fail" && rehearsed.some((each) => each.line.reason === "ExtProc");
    const of = (each: Compared): Compared => {
      if (isRace) return placeOf(each);
      // Whether the other side gets the head of a message whose body then fails is a matter of time.
      if (each.line.reason === "ExtProc") return real.status === undefined ? cutOff(each) : unsent(each);
      // No rehearsal has a backend that changes: what is last must be as if it had always been so.
      return backend === "recovers" ? lastOf(each) : each;
    };
    const isFound = rehearsed.some((each) => isDeepStrictEqual(of(each), of(real)));
    return isFound ? undefined : { real, rehearsed };
  }

  /** What is recorded of the last request must agree with a rehearsal of that, with and without what the record does not hold. */
  async #compareRecord(
    rehearsal: Rehearsal,
    config: object,
    { headers, message, ...others }: Written,
  ): Promise<Pick<Difference, "real" | "rehearsed"> | undefined> {
    const [record] = this.#gateway.records;
    if (record === undefined) throw new Error("the request has left no record");
    const { body, target = others.target, fields = [] } = message;
    const lines = [...headers, ...fields].map((line) => line.split(": ") as [string, string]);
    const query = target.slice(target.indexOf("?") + 1 || target.length);
    const supplied = { headers: lines, body, query, source: "127.0.0.1" };
    // Tokens that the request has taken are gone.
    const hasState = JSON.stringify(config).includes('"localRateLimit"');
    for (const request of [supplied, {}]) {
      const { outcomes } = await explainHappened(rehearsal, { record, request });
      const [outcome] = outcomes;
      if (outcome?.steps.some(({ kind, reason }) => kind === "listener" && reason !== undefined))
        this.counts.recalled++;
      const readsFields = request !== supplied && READ_FIELDS.has(record.decider?.policy ?? "");
      if (outcome?.unlike === undefined || (outcome.unlike === "decision" && (hasState || readsFields))) continue;
      return { real: record, rehearsed: outcomes };
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#backends.close();
    this.#services.close();
    await this.#gateway[Symbol.asyncDispose]();
  }
}

/** Fields whose values differ from run to run; tokens were taken before. */
const CHANGING = new Set(["date", "x-request-id", "cdn-loop", "x-ratelimit-reset", "x-session"]);
const OF_CONNECTION = new Set(["connection", "keep-alive"]);

/** The fields without what differs from run to run. */
function stable(headers: readonly string[]): string[] {
  const lines: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? "").toLowerCase();
    if (OF_CONNECTION.has(name)) continue;
    // A session has another ciphertext each time.
    const value = name === "set-cookie" ? headers[i + 1]?.replace(/=[^;]*/, "") : headers[i + 1];
    lines.push(CHANGING.has(name) ? name : `${name}: ${value}`);
  }
  return lines;
}

/** The outcomes, whatever the backend responds that `recovers`; services that say no more than a word are free to say another. */
async function rehearse(
  rehearsal: Rehearsal,
  facts: RequestFacts,
  bind: CompiledBind,
  backend: Written["backend"],
  services: Behavior,
  { gone, unverified }: Backends["ports"],
): Promise<readonly Outcome[]> {
  const { outcomes: open } = await rehearsal.outcomes(facts, bind, {});
  const asked = new Set(open.flatMap(({ given }) => Object.keys(given)));
  const said: Record<string, unknown> = Object.fromEntries(
    Object.entries(services).filter(([name, value]) => asked.has(name) && typeof value !== "string"),
  );
  for (const { record } of open) {
    const { endpoint = "" } = record ?? {};
    if ([gone, unverified].includes(Number(endpoint.split(":")[1]))) said[`response@${endpoint}`] = "refused";
  }
  const working = Object.keys(said).length === 0 ? open : await outcomesWith(rehearsal, facts, bind, said);
  if (backend === "works" || working.every(({ sent }) => sent.length === 0)) return working;
  const response = backend === "talks" ? TALK : FAILURE;
  const responding = await outcomesWith(rehearsal, facts, bind, { ...said, response });
  return backend === "recovers" ? [...working, ...responding] : responding;
}

/** The outcomes, without assumptions about what the request does not reach. */
async function outcomesWith(
  rehearsal: Rehearsal,
  facts: RequestFacts,
  bind: CompiledBind,
  assumed: Assumptions,
): Promise<readonly Outcome[]> {
  try {
    return (await rehearsal.outcomes(facts, bind, assumed)).outcomes;
  } catch (error) {
    if (!(error instanceof BadFacts) || error.about === undefined || !("assume" in error.about)) throw error;
    const { assume } = error.about;
    const others = Object.fromEntries(Object.entries(assumed).filter(([name]) => name !== assume));
    return outcomesWith(rehearsal, facts, bind, others);
  }
}

/** Whether an outcome depends on a service, or on the weights of backends. */
function isOpen({ given, share }: Outcome): boolean {
  return share < 1 || Object.keys(given).some((name) => ["extAuthz", "extProc", "remoteRateLimit"].includes(name));
}

/** What is seen of a request. */
interface Compared {
  readonly status: number | undefined;
  readonly headers: readonly string[];
  readonly body: string;
  readonly line: Readonly<Record<string, unknown>>;
  readonly sent: readonly Sent[];
}

/** The route alone. */
function placeOf({ line: { listener, route } }: Compared): Compared {
  return { ...NOTHING, line: { listener, route }, sent: [] };
}

/** Whatever the backend got, in as many attempts as there were. */
function unsent({ line, sent, ...others }: Compared): Compared {
  const { endpoint, "retry.attempt": _number, ...fields } = line;
  return { ...others, line: fields, sent: [] };
}

/** Whatever the client got before its connection was closed. */
function cutOff(each: Compared): Compared {
  const { line, ...others } = unsent(each);
  const { "http.status": _status, "bytes.sent": _bytes, ...fields } = line;
  return { ...others, ...NOTHING, line: fields };
}

/** The last attempt. */
function lastOf({ line, sent, ...others }: Compared): Compared {
  const { "retry.attempt": _number, ...fields } = line;
  const [last] = sent.slice(-1);
  if (last === undefined) return { ...others, line: fields, sent };
  const headers = last.headers.filter((each) => !each.startsWith("x-retry-attempt:"));
  return { ...others, line: fields, sent: [{ ...last, headers }] };
}

function comparable({ record, sent, received }: Outcome): Compared {
  return {
    status: record?.status,
    headers: stable(received.headers),
    body: bodyOf(received),
    line: rehearsedLine(record),
    sent: sent.map((each) => ({ ...each, headers: stable(each.headers) })),
  };
}

/** The body without its framing. */
function bodyOf({ headers, body }: Outcome["received"]): string {
  let text = body.toString("latin1");
  if (!headers.includes("transfer-encoding")) return text;
  let whole = "";
  for (let size = Number.parseInt(text, 16); size > 0; size = Number.parseInt(text, 16)) {
    const from = text.indexOf("\r\n") + 2;
    whole += text.slice(from, from + size);
    text = text.slice(from + size + 2);
  }
  return whole;
}

let gateway: ExplainedGateway | undefined;

/** One configuration with eight requests; for `npm run fuzz`. */
export async function playExplain(seed: number): Promise<object | undefined> {
  gateway ??= await ExplainedGateway.start();
  const cases = fc.tuple(configuration, fc.array(written, { minLength: 8, maxLength: 8 }));
  const [drawn] = fc.sample(cases, { seed, numRuns: 1 });
  return drawn && gateway.compare(...drawn);
}
