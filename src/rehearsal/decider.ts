/**
 * Decides about requests by the phases, matching and policies of the data plane, as a rehearsal does, but without what only an explanation
 * needs: bytes on connections, events and a response of the backend. A decision ends with the head that the backend would get.
 */
import { createHash } from "node:crypto";
import { ms } from "../base/durations.ts";
import { ERRORS, type ErrorCode, type Reason } from "../base/errors.ts";
import type { Origin } from "../base/origin.ts";
import type { Names } from "../base/sensitive-names.ts";
import type { Need } from "../cel/index.ts";
import { UNKNOWN_LENGTH } from "../http/stream.ts";
import { backendName } from "../ir/backend-name.ts";
import type { Addresses } from "../net/addresses.ts";
import type { TlsSession } from "../net/transport.ts";
import type { CompiledChain } from "../policies/compile.ts";
import type { SetKey } from "../policies/policy-set.ts";
import type { CompiledBind, CompiledListener } from "../proxy/compile/compiled.ts";
import { originInFrontend, policyOf } from "../proxy/compile/provenance.ts";
import type { BackendCall, Exchange } from "../proxy/exchange/exchange.ts";
import { ANSWERED, type AttemptFailed, WAIT } from "../proxy/exchange/phase-result.ts";
import { addressRefusal } from "../proxy/ingress/ip-access.ts";
import { refusalOf } from "../proxy/ingress/network-authorization.ts";
import { HttpCall } from "../proxy/phases/attempt.ts";
import { openExchange } from "../proxy/phases/handle-request.ts";
import type { Services } from "../proxy/services/services.ts";
import { connectionVariables } from "../proxy/variables/connection-variables.ts";
import { sensitiveNames } from "../proxy/variables/exchange-variables.ts";
import { type Asked, type Choices, type Given, type Lack, MAX_RUNS, pushOthers } from "./choices.ts";
import { DecidingClient } from "./deciding-client.ts";
import type { SampledHead } from "./sampled-head.ts";
import type { Equality, UnknownFacts } from "./unknown-facts.ts";

/** What is decided about a request. */
export interface Decision {
  /** The gateway responds with an error, or closes the connection. */
  readonly refused: boolean;
  /** `<namespace>/<name>` */
  readonly route?: string;
  /** The path condition of the route that the request meets. */
  readonly path?: { readonly type: string; readonly value: string };
  /** The one that gets the request. */
  readonly backend?: string;
  /** Of the gateway's own response; absent if the backend responds, or for a connection that is closed. */
  readonly status?: number;
  readonly code?: ErrorCode;
  readonly reason?: Reason;
  /** The policy that has refused the request. */
  readonly policy?: SetKey;
  /** Where what has decided was written. */
  readonly origin?: Origin;
  /** What the backend gets. */
  readonly sent?: DecidedHead;
  /** The gateway's own response or, if policies change those of the backend, what they make of one with status 200. */
  readonly response?: DecidedResponse;
}

/** A head as it would be sent: names and values of headers alternate. */
export interface DecidedHead {
  readonly method: string;
  readonly target: string;
  readonly authority: string;
  readonly headers: readonly string[];
  /** The id of the request, which some field has as its value; undefined: it has none. */
  readonly id: string | undefined;
}

/** The head of a response: names and values of headers alternate. */
export interface DecidedResponse {
  readonly status: number;
  readonly headers: readonly string[];
}

/** What is decided about a sampled request if what is not known turns out as `chosen`. */
export interface PossibleDecision {
  readonly decision: Decision;
  /** Choices that the request leaves open, by name. */
  readonly chosen: ReadonlyMap<string, Asked>;
  readonly needs: readonly Lack[];
}

export interface Decisions {
  readonly possible: readonly PossibleDecision[];
  /** At least as many more ways were not tried. */
  readonly omitted: number;
}

const NO_CHOICES: PossibleDecision["chosen"] = new Map();

/** Nothing listens where the request would arrive. */
export const NO_BIND: Decisions = only({ refused: true, reason: "NotFound" });

/** A bind without what is only told about requests: log, spans and recorded bodies. */
interface SilentBind {
  readonly bind: CompiledBind;
  /** Headers for which the values that routes want are not shown. */
  readonly secret: Names;
}

/** Milliseconds for the policies of one request. */
const LONGEST_MS = 30_000;
const BODY_LENGTH: Need = { what: "the length of the body" };
const NO_CERTIFICATE = "no client certificate";

/** The call to a backend, which ends before anything is sent. */
class UnsentCall implements BackendCall {
  readonly #exchange: Exchange;
  readonly #isLonger: (bytes: number) => boolean;
  readonly #onReady: () => void;
  /** What an endpoint would get now; undefined: no endpoint yet. */
  sent: DecidedHead | undefined;
  readonly attempts = 0;
  readonly endpointName = undefined;
  readonly attemptTimeout = ms(0);
  readonly startedAt = 0;
  answeredAt = 0;
  readonly upstream = undefined;

  /** `isLonger`: whether the body has more bytes, which are not announced. */
  constructor(exchange: Exchange, isLonger: (bytes: number) => boolean, onReady: () => void) {
    this.#exchange = exchange;
    this.#isLonger = isLonger;
    this.#onReady = onReady;
  }

  attempt(): typeof WAIT | AttemptFailed {
    const failure = new HttpCall(this.#exchange).rehearse();
    if (failure !== undefined) return failure;
    const { downstream, requestSide } = this.#exchange;
    const { maxBytes } = requestSide;
    if (maxBytes !== undefined && downstream.requestLength === UNKNOWN_LENGTH && this.#isLonger(maxBytes)) {
      requestSide.exceedLimit();
      return WAIT;
    }
    const { method, path, search, authority, headers } = this.#exchange.request;
    this.sent = { method, target: path + search, authority, headers, id: this.#exchange.requestId };
    this.#onReady();
    return WAIT;
  }

  /** Once the request would be sent: responds as backends mostly do, if something changes responses. */
  answer(): void {
    const exchange = this.#exchange;
    if (this.sent === undefined || this.answeredAt > 0 || exchange.closed || !changesResponses(exchange)) return;
    this.answeredAt = performance.now();
    // Whatever the policy says about status 200.
    exchange.retries = undefined;
    exchange.responseSide.begin({ status: 200, headers: [] }, 0, null);
    exchange.endPhase(ANSWERED);
    // A policy waits, perhaps for the body.
    if (!exchange.closed && !exchange.responseSide.started) exchange.responseSide.end([]);
  }

  complete(): void {}
  abandon(): void {}
  expireAttempt(): void {}
  expire(): void {}
  discardResponse(): void {}
  answeredInstead(): void {}
}

/** Whether policies may change the response. Tunnels have none that could be assumed. */
function changesResponses({ downstream, request, responseSide, selected }: Exchange): boolean {
  if (downstream.upgrade !== "" || request.method === "CONNECT") return false;
  const { listener, routePolicies, backend } = selected;
  const isChanged = ({ response, final }: CompiledChain): boolean => response.length > 0 || final.length > 0;
  return (
    responseSide.changes ||
    isChanged(routePolicies) ||
    (listener !== undefined && isChanged(listener.policies)) ||
    (backend !== undefined && isChanged(backend.policies))
  );
}

export class Decider {
  readonly #services: Services;
  readonly #choices: Choices;
  readonly #unknowns: UnknownFacts;
  readonly #silent = new WeakMap<CompiledBind, SilentBind>();

  constructor(services: Services, choices: Choices, unknowns: UnknownFacts) {
    this.#services = services;
    this.#choices = choices;
    this.#unknowns = unknowns;
  }

  /** See `Rehearsal.decisions`. */
  decisions(head: SampledHead, bind: CompiledBind, equality: Equality): Decisions | Promise<Decisions> {
    const silent = this.#silence(bind);
    const run = (given: Given): Decision | Promise<Decision> => {
      this.#choices.begin(given);
      this.#unknowns.beginSampled(head, silent.secret, equality);
      return this.#decide(head, silent.bind);
    };
    const given = { time: new Date(head.sample.time) };
    const first = run(given);
    return !(first instanceof Promise) && isSettled(this.#choices.asked) ? only(first) : this.#all(first, given, run);
  }

  async #all(
    first: Decision | Promise<Decision>,
    given: Given,
    run: (given: Given) => Decision | Promise<Decision>,
  ): Promise<Decisions> {
    const possible: PossibleDecision[] = [];
    const open: Given[] = [];
    let decision = await first;
    for (let known = given; ; ) {
      const { asked, needs } = this.#choices;
      const chosen = new Map([...asked].filter(([, { others }]) => others.length > 0));
      possible.push({ decision, chosen, needs: [...needs.values()] });
      pushOthers(open, known, chosen);
      if (open.length === 0 || possible.length === MAX_RUNS) return { possible, omitted: open.length };
      known = open.shift() ?? given;
      decision = await run(known);
    }
  }

  #silence(bind: CompiledBind): SilentBind {
    let silent = this.#silent.get(bind);
    if (silent === undefined) {
      const untold = { accessLog: undefined, logExport: undefined, tracing: undefined, recordedBodies: undefined };
      const secret = sensitiveNames({ services: this.#services, bind });
      silent = { bind: { ...bind, ...untold, writesValues: false }, secret };
      this.#silent.set(bind, silent);
    }
    return silent;
  }

  /** A promise only if a policy waits. Rejects if one does not decide in time. */
  #decide(head: SampledHead, bind: CompiledBind): Decision | Promise<Decision> {
    const { sample } = head;
    const addresses = addressesOf(sample.source ?? SOME_CLIENT, bind);
    // Before the handshake, as in the gateway.
    const byAddress = addressRefusal(addresses.remoteAddress, undefined, { bind, services: this.#services });
    if (byAddress !== undefined) return refusedBy(byAddress.code, byAddress.origin);
    const isTls = bind.protocol === "tls";
    if (isTls !== (sample.scheme === "https")) return closed("InvalidRequest");
    const { serverName = "" } = sample;
    const listener = isTls ? bind.listeners.find(serverName) : undefined;
    if (isTls && listener?.terminator === undefined) return closed("NotFound");
    const tls = listener && this.#shakeHands(serverName, sample.version, listener);
    if (tls === NO_CERTIFICATE) return closed("Authorization");
    const client = new DecidingClient(addresses, tls);
    const { network, networkAuthorizer } = bind;
    if (network === undefined && networkAuthorizer === undefined) return this.#request(head, client, bind);
    const variables = connectionVariables(client, serverName, this.#services);
    const denial = network?.decide(variables);
    if (denial !== undefined) {
      const { origin } = refusalOf(denial, variables, { bind, services: this.#services });
      return refusedBy("TG_AUTHORIZATION", origin);
    }
    if (networkAuthorizer === undefined) return this.#request(head, client, bind);
    this.#choices.networkPolicy = bind.frontend.networkExtAuthz ?? this.#choices.networkPolicy;
    return networkAuthorizer
      .ask(variables, () => {})
      .then((decision) => {
        if (!decision.allowed) return refusedBy("TG_EXT_AUTHZ", originInFrontend("TG_EXT_AUTHZ", bind.frontend));
        client.metadata = decision.metadata;
        return this.#request(head, client, bind);
      });
  }

  /** The session after the handshake. Samples do not have the client's certificate, so whether it has one is not known. */
  #shakeHands(
    serverName: string,
    version: string,
    { terminator }: CompiledListener,
  ): TlsSession | typeof NO_CERTIFICATE | undefined {
    const clientValidation = terminator?.clientValidation;
    if (clientValidation !== undefined) this.#unknowns.lacksCertificate();
    if (clientValidation !== undefined && terminator?.admitsAll === false) {
      const digest = createHash("sha256").update(clientValidation).digest("hex").slice(0, 8);
      const need = { what: "the client's certificate" };
      if (!this.#choices.condition(`clientCertificate ${digest}`, [need])) return NO_CERTIFICATE;
    }
    return { serverName, protocol: version === "2" ? "h2" : "http/1.1", clientValidation, client: undefined };
  }

  /** Whether a body is longer whose length is not announced. */
  #isLonger(bytes: number): boolean {
    return this.#choices.condition(`the body of the request is longer than ${bytes} bytes`, [BODY_LENGTH]);
  }

  #request(head: SampledHead, client: DecidingClient, bind: CompiledBind): Decision | Promise<Decision> {
    const request = client.read(head, bind.frontend);
    if (!("method" in request)) {
      const { code } = request;
      return refusedBy(code, originInFrontend(code, bind.frontend));
    }
    const { maxRequestBodySize = 0 } = bind.frontend;
    if (client.requestLength === UNKNOWN_LENGTH && maxRequestBodySize > 0 && this.#isLonger(maxRequestBodySize))
      return refusedBy("TG_BODY_TOO_LARGE", originInFrontend("TG_BODY_TOO_LARGE", bind.frontend));
    const exchange = openExchange(client, request, bind, this.#services);
    client.attach(exchange, () => {
      const { awaited } = exchange.requestSide.body;
      return awaited > 0 && this.#isLonger(awaited) ? awaited + 1 : 1;
    });
    if (client.metadata !== undefined) exchange.policyView.requestMetadata.extauthz = client.metadata;
    let onStep = (): void => {};
    const call = new UnsentCall(
      exchange,
      (bytes) => this.#isLonger(bytes),
      () => onStep(),
    );
    exchange.call = call;
    exchange.start();
    call.answer();
    if (isDecided(exchange, call)) return decided(exchange, call, client);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        client.abort();
        exchange.close();
        reject(new Error(`a policy takes longer than ${LONGEST_MS / 1000} s`));
      }, LONGEST_MS);
      onStep = () => {
        // Once the phase has ended.
        queueMicrotask(() => {
          call.answer();
          if (!isDecided(exchange, call)) return;
          clearTimeout(timer);
          resolve(decided(exchange, call, client));
        });
      };
      exchange.onClose(() => onStep());
    });
  }
}

/** Nothing is to come that could change what is decided. */
function isDecided({ closed, responseSide }: Exchange, { sent, answeredAt }: UnsentCall): boolean {
  return closed || (sent !== undefined && (answeredAt === 0 || responseSide.started));
}

/** Reads what the phases have decided, and ends the exchange. */
function decided(exchange: Exchange, call: UnsentCall, client: DecidingClient): Decision {
  const { selected, result, bind } = exchange;
  if (!exchange.closed) exchange.close();
  const { route, match, backend } = selected;
  const { sent } = call;
  const response = client.response && { status: client.response.status, headers: client.response.headers };
  const place = {
    ...(route !== undefined && { route: route.label }),
    ...(match !== undefined && { path: match.path }),
    ...(response !== undefined && { response }),
  };
  // Else a policy has put another response in place of the backend's.
  const isAnswered = result.reason === "Upstream" && result.error === undefined;
  if (sent !== undefined && backend !== undefined && isAnswered)
    return { refused: false, ...place, backend: backendName(backend), sent };
  const { status, code, reason, decider } = result;
  const origin =
    result.error === undefined ? undefined : bind.provenance.ofError(code, decider, selected, bind.frontend);
  const policy = policyOf(decider)?.policy;
  return {
    refused: status === 0 || status >= 400 || code !== undefined,
    ...place,
    ...(status !== 0 && { status }),
    ...(code !== undefined && { code }),
    reason,
    ...(policy !== undefined && { policy }),
    ...(origin !== undefined && { origin }),
  };
}

function isSettled(asked: ReadonlyMap<string, Asked>): boolean {
  for (const { others } of asked.values()) if (others.length > 0) return false;
  return true;
}

function only(decision: Decision): Decisions {
  return { possible: [{ decision, chosen: NO_CHOICES, needs: [] }], omitted: 0 };
}

function refusedBy(code: ErrorCode, origin: Origin | undefined): Decision {
  const { status, reason } = ERRORS[code];
  return { refused: true, status, code, reason, ...(origin !== undefined && { origin }) };
}

function closed(reason: Reason): Decision {
  return { refused: true, reason };
}

/** What stands for a client that is not known (RFC 5737). */
const SOME_CLIENT = { address: "192.0.2.1", port: 1024 };

function addressesOf({ address, port }: typeof SOME_CLIENT, bind: CompiledBind): Addresses {
  return {
    remoteAddress: address,
    remotePort: port,
    rawAddress: address,
    rawPort: port,
    localAddress: "127.0.0.1",
    localPort: bind.port,
  };
}
