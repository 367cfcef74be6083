/**
 * The configuration stream, controller's side. In: the state of each fleet, whenever it changes, and the streams of proxies
 * (Envoy's delta aggregated discovery over gRPC). Out: to each proxy what it lacks of the state of its own fleet, and to the
 * controller what each proxy runs. Every replica of the controller serves.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { Metadata, Server, ServerCredentials, type ServerDuplexStream, status } from "@grpc/grpc-js";
import { messageOf } from "../../base/errors.ts";
import { type Logger, LogThrottle } from "../../base/log.ts";
import {
  type DeltaDiscoveryRequest,
  DeltaDiscoveryRequestSchema,
} from "../../gen/envoy/service/discovery/v3/discovery_pb.ts";
import type { ExtraMetric } from "../../telemetry/prometheus.ts";
import { classOfFleet, DELTA_METHOD, fleetOfClass, type GatewayState } from "../resources.ts";
import { AuthError, type Authenticate, type Identity } from "./authenticator.ts";
import { type EncodedState, encodeState } from "./encoded-state.ts";
import { XdsMetrics } from "./metrics.ts";
import type { ProxyStatus } from "./proxies.ts";
import { ProxyStream } from "./proxy-stream.ts";

/** Bytes of a request. One that resumes names every resource of the proxy, in about 100 bytes each: enough for 80,000. */
const MAX_REQUEST = 8 * 1024 * 1024;
/** Of one connection. A proxy has one. */
const MAX_STREAMS = 4;
/** Of one pod: an earlier stream may have ended without our knowing yet. */
const MAX_STREAMS_OF_POD = 4;
/** Milliseconds after which a connection without a stream is closed. */
const IDLE_MS = 60_000;
/**
 * Milliseconds between two checks of the token of an open stream: a proxy whose ServiceAccount is deleted loses access. Tokens
 * last for hours; a proxy whose token has expired connects again with the next.
 */
const RECHECK_MS = 10 * 60_000;
/** Milliseconds between two lines of the log about rejected proxies: strangers must not fill it. */
const REFUSED_LINE_MS = 1000;
/** Milliseconds. A proxy whose node has vanished is noticed after their sum. */
const PING_EVERY = 20_000;
const PING_TIMEOUT = 10_000;
/** Previews that are kept, and milliseconds for which: proxies ask for them at once. */
const MAX_PREVIEWS = 8;
const PREVIEW_MS = 2 * 60_000;
/** Milliseconds for the streams to end at a shutdown; proxies connect to another replica meanwhile. */
const DRAIN_MS = 1000;

export interface XdsServerOptions {
  /** Default: plaintext. */
  readonly credentials?: ServerCredentials | undefined;
  /** Absent: proxies need no token. */
  readonly authenticate?: Authenticate | undefined;
  /** The ServiceAccount of the proxies of a fleet, by its key; undefined: there is no such fleet. */
  readonly accountOf: (fleet: string) => Pick<Identity, "namespace" | "serviceAccount"> | undefined;
  readonly log: Logger;
  /**
   * A proxy has connected, or another state was sent, acknowledged or rejected; `connected` is false when it has left. `gateways`: keys of
   * those in the state that it runs; undefined: it has not acknowledged any since it connected.
   */
  readonly onProxy?: (proxy: ProxyStatus, connected: boolean, gateways: readonly string[] | undefined) => void;
  /** A request at a proxy needs a newer version of a document. Any proxy may name any URL, as often as it likes. */
  readonly onDocumentWanted?: (url: string) => void;
  /** Milliseconds between two checks of the token of an open stream. Default: 10 minutes. */
  readonly recheck?: number;
}

/** As in Kubernetes. */
const MAX_POD_NAME = 253;

type DeltaStream = ServerDuplexStream<DeltaDiscoveryRequest, Buffer>;

/** The end of a rejected stream, with a gRPC status. */
class Refusal extends Error {
  readonly code: status;
  constructor(code: status, message: string) {
    super(message);
    this.code = code;
  }
}

export class XdsServer {
  readonly #options: XdsServerOptions;
  readonly #server: Server;
  readonly #metrics = new XdsMetrics();
  readonly #refused = new LogThrottle(REFUSED_LINE_MS);
  readonly #states = new Map<string, EncodedState>();
  readonly #calls = new Set<DeltaStream>();
  /** Streams by the key of their fleet. */
  readonly #streams = new Map<string, Set<ProxyStream>>();
  /** Of proxies that ask for a preview, likewise. */
  readonly #previewStreams = new Map<string, Set<ProxyStream>>();
  /** By id, the oldest first. */
  readonly #previews = new Map<string, { readonly fleet: string; readonly state: EncodedState }>();

  constructor(options: XdsServerOptions) {
    this.#options = options;
    this.#server = new Server({
      "grpc.keepalive_time_ms": PING_EVERY,
      "grpc.keepalive_timeout_ms": PING_TIMEOUT,
      "grpc.max_receive_message_length": MAX_REQUEST,
      "grpc.max_concurrent_streams": MAX_STREAMS,
      "grpc.max_connection_idle_ms": IDLE_MS,
    });
    const method = {
      path: DELTA_METHOD,
      requestStream: true,
      responseStream: true,
      requestSerialize: (bytes: Buffer) => bytes,
      requestDeserialize: (bytes: Buffer) => fromBinary(DeltaDiscoveryRequestSchema, bytes),
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    } as const;
    this.#server.addService({ delta: method }, { delta: (call: DeltaStream) => void this.#serve(call) });
  }

  /** `address`: `host:port`, port 0 lets the system choose. Resolves with the port; rejects if it is taken. */
  listen(address: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const credentials = this.#options.credentials ?? ServerCredentials.createInsecure();
      this.#server.bindAsync(address, credentials, (error, port) =>
        error === null ? resolve(port) : reject(withCode(error)),
      );
    });
  }

  /**
   * Sets the state of a fleet, which is made of these Gateways, and sends what has changed to its proxies, without waiting for them. undefined:
   * its Gateways are gone; the proxies keep what they have. Proxies of a fleet without a state wait for one.
   */
  publish(fleet: string, state: GatewayState | undefined, gateways: readonly string[] = []): void {
    if (state === undefined) {
      this.#states.delete(fleet);
      return;
    }
    const encoded = encodeState(state, this.#states.get(fleet), gateways);
    this.#states.set(fleet, encoded);
    for (const stream of this.#streams.get(fleet) ?? []) stream.offer(encoded);
  }

  /** Keeps a state that a fleet might have for its proxies, which ask for it by `id`, for two minutes at most. */
  keepPreview(id: string, fleet: string, state: GatewayState): void {
    const [oldest] = this.#previews.keys();
    if (oldest !== undefined && this.#previews.size >= MAX_PREVIEWS) this.#previews.delete(oldest);
    const kept = { fleet, state: encodeState(state, this.#states.get(fleet)) };
    this.#previews.set(id, kept);
    const forget = (): void => {
      if (this.#previews.get(id) === kept) this.#previews.delete(id);
    };
    setTimeout(forget, PREVIEW_MS).unref();
  }

  /** The connected proxies. */
  get proxies(): ProxyStatus[] {
    return [...this.#streams.values()].flatMap((streams) => [...streams].map((stream) => stream.status));
  }

  metrics(): ExtraMetric[] {
    return this.#metrics.render(new Map([...this.#streams].map(([fleet, streams]) => [fleet, streams.size])));
  }

  /** Ends all streams gracefully; proxies connect to another replica and resume there. */
  async close(): Promise<void> {
    for (const call of this.#calls) call.end();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#server.forceShutdown();
        resolve();
      }, DRAIN_MS);
      this.#server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  async #serve(call: DeltaStream): Promise<void> {
    let stream: ProxyStream | undefined;
    let left = (): void => {};
    let gone = false;
    this.#calls.add(call);
    const end = (): void => {
      gone = true;
      this.#calls.delete(call);
      left();
      left = () => {};
      clearInterval(recheck);
    };
    let recheck: NodeJS.Timeout | undefined;
    call.on("cancelled", end);
    call.on("close", end);
    call.on("error", end);
    call.on("end", () => {
      end();
      call.end();
    });
    try {
      const identity = await this.#authenticate(call.metadata);
      if (gone) return;
      const refuse = (error: unknown): void => {
        if (gone) return;
        end();
        this.#refuse(call, error);
      };
      if (identity !== undefined)
        recheck = setInterval(
          () => void this.#recheck(call.metadata).catch(refuse),
          this.#options.recheck ?? RECHECK_MS,
        ).unref();
      call.on("data", (request: DeltaDiscoveryRequest) => {
        try {
          if (gone) return;
          if (stream === undefined) {
            const opened = this.#open(call, request, identity);
            stream = opened.stream;
            left = opened.left;
          }
          const problem = stream.receive(request);
          if (problem !== undefined) throw new Refusal(status.INVALID_ARGUMENT, problem);
        } catch (error) {
          refuse(error);
        }
      });
    } catch (error) {
      end();
      this.#refuse(call, error);
    }
  }

  /** undefined if proxies need no token. Rejects with Refusal. */
  async #authenticate(metadata: Metadata): Promise<Identity | undefined> {
    const { authenticate } = this.#options;
    if (authenticate === undefined) return undefined;
    this.#metrics.authRequests++;
    const token = tokenIn(metadata);
    try {
      if (token === undefined) throw new AuthError("a ServiceAccount token is required: authorization: Bearer <token>");
      return await authenticate(token);
    } catch (error) {
      this.#metrics.authFailures++;
      const temporary = error instanceof AuthError && error.temporary;
      throw new Refusal(temporary ? status.UNAVAILABLE : status.UNAUTHENTICATED, messageOf(error));
    }
  }

  /** Rejects with Refusal if the token is no longer valid; while it cannot be checked, the stream stays open. */
  async #recheck(metadata: Metadata): Promise<void> {
    try {
      await this.#options.authenticate?.(tokenIn(metadata) ?? "");
    } catch (error) {
      if (!(error instanceof AuthError && error.temporary)) throw new Refusal(status.UNAUTHENTICATED, messageOf(error));
    }
  }

  /** The first request names the Gateway, or the class whose Gateways share the proxies, or a preview of either. Throws Refusal. */
  #open(
    call: DeltaStream,
    { node }: DeltaDiscoveryRequest,
    identity: Identity | undefined,
  ): { readonly stream: ProxyStream; readonly left: () => void } {
    const { NAMESPACE, GATEWAY, GATEWAY_CLASS, POD_NAME: pod, PREVIEW: preview } = node?.metadata ?? {};
    const fleet = fleetIn(NAMESPACE, GATEWAY, GATEWAY_CLASS);
    if (typeof NAMESPACE !== "string" || fleet === undefined)
      throw new Refusal(
        status.INVALID_ARGUMENT,
        "the node's metadata must name NAMESPACE and GATEWAY, or GATEWAY_CLASS instead of the latter",
      );
    if (identity !== undefined) this.#authorize(identity, fleet);
    const peer = call.getPeer();
    // The pod comes from the token as the API server sees it: a proxy must not speak for another pod.
    const shown = {
      gateway: fleet,
      namespace: identity?.namespace ?? NAMESPACE,
      pod: identity?.pod ?? (typeof pod === "string" ? pod.slice(0, MAX_POD_NAME) : ""),
      peer,
    };
    const state = preview === undefined ? this.#states.get(fleet) : this.#previewOf(fleet, preview);
    const all = preview === undefined ? this.#streams : this.#previewStreams;
    const report = (connected: boolean): void => {
      if (preview === undefined) this.#options.onProxy?.(stream.status, connected, stream.gateways);
    };
    const writer = { write: (response: Buffer) => call.write(response) };
    const stream: ProxyStream = new ProxyStream(
      shown,
      writer,
      this.#metrics,
      () => report(true),
      this.#options.onDocumentWanted,
    );
    call.on("drain", () => stream.drained());
    const streams = all.get(fleet) ?? new Set();
    const others = shown.pod === "" ? 0 : [...streams].filter((each) => each.pod === shown.pod).length;
    if (others >= MAX_STREAMS_OF_POD)
      throw new Refusal(status.RESOURCE_EXHAUSTED, `pod ${shown.pod} has ${others} streams already`);
    all.set(fleet, streams.add(stream));
    if (preview === undefined) this.#options.log.info("proxy connected", shown);
    report(true);
    if (state !== undefined) stream.offer(state);
    return {
      stream,
      left: () => {
        streams.delete(stream);
        if (streams.size === 0) all.delete(fleet);
        if (preview === undefined) this.#options.log.info("proxy disconnected", shown);
        report(false);
      },
    };
  }

  /** Throws Refusal. */
  #previewOf(fleet: string, id: unknown): EncodedState {
    const kept = typeof id === "string" ? this.#previews.get(id) : undefined;
    if (kept?.fleet !== fleet) throw new Refusal(status.NOT_FOUND, "the preview is not kept any more");
    return kept.state;
  }

  /** A proxy sees the configuration of its own fleet only. Throws Refusal. */
  #authorize({ namespace, serviceAccount }: Identity, fleet: string): void {
    const wanted = this.#options.accountOf(fleet);
    if (namespace === wanted?.namespace && serviceAccount === wanted.serviceAccount) {
      this.#metrics.authSuccesses++;
      return;
    }
    this.#metrics.authFailures++;
    const whose = classOfFleet(fleet) === undefined ? `Gateway ${fleet}` : fleet;
    const why =
      wanted === undefined
        ? "the Gateways of this class share no proxies"
        : `its proxies run as ${wanted.namespace}/${wanted.serviceAccount}`;
    throw new Refusal(
      status.PERMISSION_DENIED,
      `ServiceAccount ${namespace}/${serviceAccount} may not read the configuration of ${whose}; ${why}`,
    );
  }

  #refuse(call: DeltaStream, error: unknown): void {
    const code = error instanceof Refusal ? error.code : status.INTERNAL;
    const message = messageOf(error);
    this.#refused.run((others) =>
      this.#options.log.warn("rejected the stream of a proxy", {
        peer: call.getPeer(),
        reason: message,
        ...(others > 0 && { others }),
      }),
    );
    call.emit("error", { code, details: message, metadata: new Metadata() });
  }
}

/** The key of the fleet that a node's metadata names; undefined: none. */
function fleetIn(namespace: unknown, gateway: unknown, gatewayClass: unknown): string | undefined {
  if (typeof gatewayClass === "string") return fleetOfClass(gatewayClass);
  return typeof gateway === "string" ? `${String(namespace)}/${gateway}` : undefined;
}

function tokenIn(metadata: Metadata): string | undefined {
  return /^Bearer (\S+)$/i.exec(String(metadata.get("authorization")[0] ?? ""))?.[1];
}

/** grpc-js quotes the system's errors in a text, `… listen EADDRINUSE: …`, and drops their codes. */
function withCode(error: Error): Error {
  const [code] = /\bE[A-Z]{3,}\b/.exec(error.message) ?? [];
  return code === undefined ? error : Object.assign(error, { code });
}
