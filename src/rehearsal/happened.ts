/**
 * Explains a request that is over. A rehearsal of what its record knows says why it ended as it did. What is not recorded is open in the
 * rehearsal, and ways that contradict the record are dropped: what happened is what the record says.
 */
import { isDeepStrictEqual } from "node:util";
import { REDACTED } from "../base/redaction.ts";
import type { CompiledBind } from "../proxy/compile/compiled.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { RequestRecord } from "../recorder/records.ts";
import type { Step } from "../trace/steps.ts";
import { type Assumptions, isAssumption, placed, readAssumptions, supplyOf, withoutPlace } from "./assumptions.ts";
import type { Given, Lack } from "./choices.ts";
import type { Explained, ExplainedOutcome } from "./explanation.ts";
import { factsOfRequest, type RequestFacts, type WrittenRequest } from "./facts.ts";
import type { Outcome } from "./outcome.ts";
import type { Question, RecordedQuestion } from "./question.ts";
import { allSteps, explainedRecord, isKey, type RecordSteps, stepsOfRecord } from "./recorded.ts";
import type { Rehearsal } from "./rehearsal.ts";
import { treeOf } from "./tree.ts";

const CERTIFICATE: Lack = { what: "the client's certificate", supply: supplyOf("clientCertificate") };

const FORBIDDEN = 403;
/** Bytes of a body that was too large, if the record does not say how large. */
const TOO_LARGE = 16 * 1024 * 1024;

/** A request that is over, with what is known of it besides its record. */
export interface Happened extends Pick<RecordedQuestion, "request" | "assume"> {
  readonly record: RequestRecord;
}

/**
 * What happened, and the question what would happen to such a request. `ports`: where binds listen, if not where the configuration says.
 * Throws BadFacts for what is known besides the record.
 */
export async function explainHappened(rehearsal: Rehearsal, happened: Happened, ports: Ports = {}): Promise<Explained> {
  const { record } = happened;
  const bind = rehearsal.binds.find(({ key }) => key === record.bind);
  const written = bind && writtenOf(happened, { ...bind, port: ports[bind.key] ?? bind.port });
  const { open, ...explained } = await explainBy(rehearsal, happened, bind);
  const given = explained.outcomes[0]?.given ?? {};
  return { ...explained, ...(written !== undefined && { question: questionAbout(written, given, open) }) };
}

/** `open`: all that is not known and matters, also where what happened tells how it was. */
async function explainBy(
  rehearsal: Rehearsal,
  happened: Happened,
  bind: CompiledBind | undefined,
): Promise<Explained & { readonly open?: readonly Lack[] }> {
  const { record, assume = {} } = happened;
  const assumed = readAssumptions(assume);
  const facts = bind && factsOf(happened, bind);
  if (bind === undefined || facts === undefined) return { outcomes: [explainedRecord(record)] };
  const known = knownOf(record);
  const { outcomes, omitted } = await rehearsal.outcomes(facts, bind, assumed, known);
  // A client without the certificate that it had, which is not recorded, cannot send the request.
  const sent = outcomes.filter(({ recorded }) => recorded !== undefined && recorded.kind === undefined);
  if (sent.length === 0) return { outcomes: [{ ...explainedRecord(record), needs: [CERTIFICATE] }] };
  const chosen = sent.filter(({ recorded }) => hasPlace(record, recorded));
  const fitting = agreeing(record, chosen);
  // Which way it was is not among those that were tried.
  if (fitting.length === 0 && omitted > 0) return { outcomes: [explainedRecord(record)], omitted };
  const explained = {
    ...explainedRecord(record),
    ...(omitted === 0 ? deduced(fitting, sent, { ...known, ...assumed }) : {}),
  };
  return {
    outcomes: [{ ...explained, ...treeOfHappened(record, { sent, chosen, fitting }) }],
    ...(omitted > 0 && { omitted }),
    open: fitting.flatMap(({ needs }) => needs),
  };
}

/**
 * The question what would happen to such a request. Fields and parameters that matter and are not recorded are there as redacted, so their
 * values are open; what services said and whether a credential was valid is assumed.
 */
function questionAbout(
  written: WrittenRequest,
  given: Given,
  open: readonly Lack[] = [],
): Required<Pick<Question, "request" | "assume">> {
  const named = (kind: "field" | "parameter"): string[] => [
    ...new Set(open.flatMap(({ supply }) => (supply?.kind === kind ? (supply.name ?? []) : []))),
  ];
  const parameters = named("parameter").map((name) => `${encodeURIComponent(name)}=${REDACTED}`);
  const url = parameters.reduce((all, each) => `${all}${all.includes("?") ? "&" : "?"}${each}`, written.url);
  // The URL has the host.
  const headers = [
    ...written.headers.filter(([name]) => name.toLowerCase() !== "host"),
    ...named("field").map((name) => [name, REDACTED] as const),
  ];
  // Without a credential, there is nothing to assume about it.
  const assume = Object.entries(given).filter(
    ([name, value]) => isAssumption(withoutPlace(name)) && value !== "missing",
  );
  return { request: { ...written, url, headers }, assume: Object.fromEntries(assume) };
}

/** What is known of a request that is over; undefined for anything else, and if its path is not whole. */
export function factsOf(
  happened: Pick<Happened, "record" | "request">,
  bind: Pick<CompiledBind, "protocol" | "port">,
): RequestFacts | undefined {
  const written = writtenOf(happened, bind);
  if (written === undefined) return undefined;
  const partly = {
    time: new Date(happened.record.time),
    source: written.source !== undefined,
    certificate: written.certificate !== undefined,
  };
  return { ...factsOfRequest(written), partly };
}

/** The same, as somebody would write it. */
function writtenOf(
  { record, request = {} }: Pick<Happened, "record" | "request">,
  bind: Pick<CompiledBind, "protocol" | "port">,
): WrittenRequest | undefined {
  const { kind = "request", method = "", host = "", path, version, client, grpcStatus, received, error } = record;
  if (kind !== "request" || record.cut === true || method === "CONNECT" || host === "" || !path.startsWith("/"))
    return undefined;
  const { headers = [], body = "", query = "", source = client && withoutPort(client), certificate } = request;
  const url = `${bind.protocol === "tls" ? "https" : "http"}://${host}:${bind.port}${path}`;
  // Clients send paths and hosts that no URL has.
  if (!URL.canParse(url) || /[^\x21-\x7e]/.test(path)) return undefined;
  const has = (field: string): boolean => headers.some(([name]) => name.toLowerCase() === field);
  const isGrpc = grpcStatus !== undefined && !has("content-type");
  const hasLength = has("content-length") || has("transfer-encoding");
  // There was a body, whose content is not known; none of it is read if its announced length is refused.
  const length = received === 0 && error === "TG_BODY_TOO_LARGE" ? TOO_LARGE : received;
  return {
    url: query === "" ? url : `${url}?${query}`,
    method,
    headers: [
      ...(has("host") ? [] : [["host", host] as const]),
      ...(isGrpc ? [["content-type", "application/grpc"] as const] : []),
      ...(length > 0 && body === "" && !hasLength ? [["content-length", String(length)] as const] : []),
      ...headers,
    ],
    body,
    source,
    version: version === "HTTP/2" ? "2" : "1.1",
    certificate,
  };
}

function withoutPort(client: string): string {
  return client.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
}

/** What the record says about choices of the rehearsal. */
function knownOf({ backend, status, reason, error, grpcStatus, decider }: RequestRecord): Assumptions {
  const hasStatus = reason === "Upstream" && grpcStatus === undefined && status >= 200 && status <= 599;
  const isNamed = backend !== undefined && !isKey(backend);
  const denied = error === "TG_EXT_PROC_DENIED" && decider?.phase !== undefined && status >= 200;
  return readAssumptions({
    ...(isNamed && { backend }),
    ...(hasStatus && { response: { status } }),
    // Without it, that service would only allow or fail.
    // Clients of gRPC get status 200, whatever the service has responded with.
    ...(denied && { [placed("extProc", decider.phase)]: grpcStatus === undefined ? status : FORBIDDEN }),
  });
}

/** Both have reached the same part of the configuration. */
function hasPlace(record: RequestRecord, rehearsed: RequestRecord | undefined): boolean {
  return (["listener", "gateway", "route", "routeRule"] as const).every((name) => record[name] === rehearsed?.[name]);
}

/** The outcomes that end as the record says; those by the same rule if there are any: rules may have moved since then. */
function agreeing(record: RequestRecord, outcomes: readonly Outcome[]): readonly Outcome[] {
  const alike = outcomes.filter(({ recorded }) => recorded !== undefined && endsAlike(record, recorded));
  const same = alike.filter(({ recorded }) => recorded?.decider?.rule === record.decider?.rule);
  return same.length > 0 ? same : alike;
}

function endsAlike(record: RequestRecord, rehearsed: RequestRecord): boolean {
  // What the backend responds, and what is done with that, is not rehearsed.
  if (wasCalled(record)) return wasCalled(rehearsed) && record.backend === rehearsed.backend;
  const decider = ({ decider: { policy, phase } = {} }: RequestRecord): unknown => [policy, phase];
  return (
    record.error === rehearsed.error &&
    record.reason === rehearsed.reason &&
    isDeepStrictEqual(decider(record), decider(rehearsed))
  );
}

function wasCalled({ attempts = 0 }: RequestRecord): boolean {
  return attempts > 0;
}

/** What must have been so, because other choices contradict the record, and what else is open. */
function deduced(
  fitting: readonly Outcome[],
  all: readonly Outcome[],
  known: Given,
): Pick<ExplainedOutcome, "given" | "needs"> {
  const [first] = fitting;
  const isCertain = (name: string): boolean =>
    fitting.every(({ given }) => name in given && isDeepStrictEqual(given[name], first?.given[name]));
  const isDeduced = (name: string): boolean =>
    isCertain(name) && all.some(({ given }) => name in given && !isDeepStrictEqual(given[name], first?.given[name]));
  const names = Object.keys(first?.given ?? {}).filter((name) => !(name in known) && withoutPlace(name) !== "backend");
  const certain = names.filter(isDeduced);
  const needs = new Map(
    fitting.flatMap((outcome) => outcome.needs).map((need): [string, Lack] => [JSON.stringify(need), need]),
  );
  const open = [...needs.values()].filter(({ choice }) => choice === undefined || !isCertain(choice));
  return {
    given: Object.fromEntries(certain.map((name) => [name, first?.given[name]])),
    ...(open.length > 0 && { needs: open }),
  };
}

interface Rehearsed {
  /** Those in which the client can send the request. */
  readonly sent: readonly Outcome[];
  /** Those with the listener and the route of the record. */
  readonly chosen: readonly Outcome[];
  /** Those that end as the record says. */
  readonly fitting: readonly Outcome[];
}

/** The tree, from the rehearsal as far as it agrees with the record, from there on as recorded. */
function treeOfHappened(
  record: RequestRecord,
  { sent, chosen, fitting }: Rehearsed,
): Pick<ExplainedOutcome, "steps" | "unlike"> {
  const own = stepsOfRecord(record);
  if (fitting.length > 0) return { steps: joined(own, merged(fitting.map(decisionsOf))) };
  const [other] = chosen;
  if (other !== undefined)
    return { steps: joined(own, contradicted(record, own, decisionsOf(other))), unlike: "decision" };
  const route = sent[0]?.recorded?.route ?? "none";
  const reason = `with what is known it would be ${route}, so ${DIFFERENT}`;
  const place = own.place.map((step) => (step.kind === "route" ? { ...step, reason } : step));
  return { steps: allSteps({ ...own, place }), unlike: "route" };
}

/** As the end of a reason: why a rehearsal and the record differ. */
const DIFFERENT = "something decided that is not known, such as a field or the state at that time";

/** Decisions of a rehearsal in place of those parts of a record. */
function joined({ arrival, decider, call, end }: RecordSteps, decisions: readonly Step[]): Step[] {
  const further = decider.filter((step) => !decisions.some((each) => isPeer(each, step)));
  return [arrival, ...decisions, ...further, ...call, end];
}

/** The steps up to the call of the backend, or to the response, without header fields. */
function decisionsOf(outcome: Outcome): Step[] {
  const steps = treeOf(outcome, new Map());
  const end = steps.findIndex(({ kind }) => kind === "request" || kind === "endpoint" || kind === "response");
  return end < 0 ? steps : steps.slice(0, end);
}

/** The decisions of a rehearsal on the same route that ended otherwise, corrected by what the record says. */
function contradicted(record: RequestRecord, { decider }: RecordSteps, decisions: readonly Step[]): Step[] {
  const [deciding] = decider;
  const refusing = decisions.findIndex(({ kind, result }) => kind === "policy" && result === "no");
  const at = decisions.findIndex(({ kind, name }) => kind === "policy" && name === deciding?.name);
  const end = refusing >= 0 && (at < 0 || refusing < at) ? refusing : at;
  const before = end < 0 ? decisions : decisions.slice(0, end);
  const refusal = refusing >= 0 && end === refusing ? decisions[refusing] : undefined;
  const passed: Step[] =
    refusal === undefined || refusal.name === deciding?.name
      ? []
      : [
          {
            ...refusal,
            result: "yes",
            reason: `passed; with what is known it would not (${refusal.reason}), so ${DIFFERENT}`,
          },
        ];
  if (deciding === undefined) return [...before, ...passed];
  const rest = at < 0 ? [] : decisions.slice(at + 1).filter(({ result }) => result === "notReached");
  const reason = `${deciding.reason}; with what is known it would ${record.error === undefined ? "not decide" : "pass"}, so ${DIFFERENT}`;
  return [...before, ...passed, { ...deciding, reason, steps: decisions[at]?.steps ?? [] }, ...rest];
}

/** The decisions of several outcomes as one: what differs among them is not known. */
function merged(all: readonly (readonly Step[])[]): Step[] {
  const [first = [], ...others] = all;
  if (others.length === 0) return [...first];
  const known = first.map((step) =>
    agreed(
      step,
      others.map((steps) => steps.find((each) => isPeer(each, step))),
    ),
  );
  const further = others.flat().filter((step) => !first.some((each) => isPeer(each, step)));
  const distinct = further.filter((step, i) => further.findIndex((each) => isPeer(each, step)) === i);
  return [...known, ...distinct.map((step): Step => ({ ...step, result: "unknown", reason: orNot([step.reason]) }))];
}

function isPeer(one: Step, other: Step): boolean {
  return one.kind === other.kind && one.name === other.name;
}

function agreed(step: Step, peers: readonly (Step | undefined)[]): Step {
  if (peers.every((peer) => isDeepStrictEqual(peer, step))) return step;
  const found = [step, ...peers.filter((peer) => peer !== undefined)];
  const reasons = [...new Set(found.map(({ reason }) => reason))];
  const { values: _values, ...shown } = step;
  const isSame = found.length > peers.length && found.every(({ result }) => result === step.result);
  return {
    ...shown,
    result: isSame ? step.result : "unknown",
    reason: found.length > peers.length ? reasons.filter(Boolean).join(", or ") : orNot(reasons),
    steps: merged(found.map(({ steps }) => steps)),
  };
}

function orNot(reasons: readonly (string | undefined)[]): string {
  return [...reasons.filter(Boolean), "not reached"].join(", or ");
}
