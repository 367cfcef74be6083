import { fromBinary } from "@bufbuild/protobuf";
import type { DeltaDiscoveryRequest } from "../../gen/envoy/service/discovery/v3/discovery_pb.ts";
import type { Status } from "../../gen/google/rpc/status_pb.ts";
import { HeldBackSchema } from "../../gen/tracegate/dev/config/v1/config_pb.ts";
import { ADDRESS_TYPE, HELD_BACK_TYPE, type HeldBack, RESOURCE_TYPE, WANTED } from "../resources.ts";
import { differenceTo, type EncodedState, TYPES, type TypeUrl } from "./encoded-state.ts";
import type { XdsMetrics } from "./metrics.ts";
import type { ProxyStatus, Rejection } from "./proxies.ts";
import { responsesOf } from "./responses.ts";

/** The transport of a proxy's stream. */
interface ResponseWriter {
  /** False = wait for `onDrain`. */
  write(response: Buffer): boolean;
}

/** A batch that has been neither acknowledged nor rejected. */
interface Batch {
  readonly state: EncodedState;
  /** `performance.now()` when the state was published or the proxy asked for it. */
  readonly since: number;
  readonly responses: Iterator<Buffer>;
  /** Of the last response. */
  nonce: string;
}

/** Characters that are kept of the reason of a rejection, which goes into statuses and Events. */
const MAX_REASON = 1000;
/** Most different reasons that are taken for one batch: repeats may fail in other ways, but not without end. */
const MAX_REASONS = 10;

type SentVersions = Readonly<Record<TypeUrl, ReadonlyMap<string, { readonly version: string }>>>;
const NONE: ReadonlyMap<string, { readonly version: string }> = new Map();

/**
 * What one proxy has and is being sent. At most one batch is in flight: while the proxy receives and applies it, changes only
 * replace the state that will be sent next. So a slow proxy costs no memory, and gets the newest state instead of every one.
 */
export class ProxyStream {
  readonly #identity: Pick<ProxyStatus, "gateway" | "namespace" | "pod" | "peer">;
  readonly #writer: ResponseWriter;
  readonly #metrics: XdsMetrics;
  readonly #onChange: () => void;
  readonly #onWanted: (url: string) => void;
  readonly #connectedAt = new Date().toISOString();
  /** Versions that the proxy had when it connected, type by type, until both are known. */
  readonly #initial = new Map<TypeUrl, ReadonlyMap<string, { readonly version: string }>>();
  /** What the proxy has received. */
  #known: SentVersions | undefined;
  #sent: EncodedState | undefined;
  #newest: EncodedState | undefined;
  #since = 0;
  #batch: Batch | undefined;
  #blocked = false;
  #nonces = 0;
  /** The last batch, which may be acknowledged after it was rejected. */
  #answered: { readonly nonce: string; readonly state: Pick<EncodedState, "version" | "gateways"> } | undefined;
  #acknowledged = "";
  /** Keys of the Gateways in it. */
  #running: readonly string[] | undefined;
  /** Those that are not held back. */
  #serving: readonly string[] | undefined;
  readonly #acknowledgedTypes = { [RESOURCE_TYPE]: "", [ADDRESS_TYPE]: "" };
  #rejection: Rejection | null = null;
  /** How many different reasons there were for rejecting the last batch. */
  #reasons = 0;

  /** `onChange`: the status has changed. `onWanted`: the proxy needs a newer version of a document. */
  constructor(
    identity: Pick<ProxyStatus, "gateway" | "namespace" | "pod" | "peer">,
    writer: ResponseWriter,
    metrics: XdsMetrics,
    onChange: () => void,
    onWanted: (url: string) => void = () => {},
  ) {
    this.#identity = identity;
    this.#writer = writer;
    this.#metrics = metrics;
    this.#onChange = onChange;
    this.#onWanted = onWanted;
  }

  /**
   * Keys of the Gateways whose part of the acknowledged state the proxy runs; undefined: it has not acknowledged any since it connected. The
   * same array until they change.
   */
  get gateways(): readonly string[] | undefined {
    return this.#serving;
  }

  get pod(): string {
    return this.#identity.pod;
  }

  get status(): ProxyStatus {
    return {
      ...this.#identity,
      connectedAt: this.#connectedAt,
      sent: this.#sent?.version ?? "",
      acknowledged: this.#acknowledged,
      acknowledgedTypes: { ...this.#acknowledgedTypes },
      rejection: this.#rejection,
      synchronized:
        this.#newest !== undefined && this.#acknowledged === this.#newest.version && this.#rejection === null,
    };
  }

  /** The newest state of the proxy's fleet. */
  offer(state: EncodedState): void {
    if (this.#newest?.version !== state.version) this.#since = performance.now();
    this.#newest = state;
    // A Gateway that adds no resources does not change the version.
    const others = this.#acknowledged === state.version && this.#running !== state.gateways;
    if (others) this.#runs(state.gateways, this.#rejection?.heldBack);
    this.#begin();
    if (others) this.#onChange();
  }

  /** Handles any request of the stream. Returns what is wrong with it; undefined: nothing. */
  receive(request: DeltaDiscoveryRequest): string | undefined {
    const type = TYPES.find((each) => each === request.typeUrl);
    if (type === undefined) return `unknown type ${request.typeUrl}`;
    if (request.responseNonce !== "") this.#answer(type, request);
    else if (!this.#initial.has(type)) this.#subscribe(type, request.initialResourceVersions);
    else
      for (const name of request.resourceNamesSubscribe)
        if (name.startsWith(WANTED)) this.#onWanted(name.slice(WANTED.length));
    return undefined;
  }

  /** The proxy takes responses again. */
  drained(): void {
    this.#blocked = false;
    this.#write();
  }

  #subscribe(type: TypeUrl, versions: Readonly<Record<string, string>>): void {
    this.#initial.set(type, new Map(Object.entries(versions).map(([name, version]) => [name, { version }])));
    const resources = this.#initial.get(RESOURCE_TYPE);
    const addresses = this.#initial.get(ADDRESS_TYPE);
    if (resources === undefined || addresses === undefined) return;
    this.#known = { [RESOURCE_TYPE]: resources, [ADDRESS_TYPE]: addresses };
    // They are no longer needed; an empty map means that they were given.
    for (const each of TYPES) this.#initial.set(each, NONE);
    this.#since = performance.now();
    this.#begin();
  }

  #begin(): void {
    const state = this.#newest;
    if (state === undefined || this.#known === undefined || this.#batch !== undefined) return;
    if (this.#sent?.version === state.version) return;
    const difference = differenceTo(state, this.#known);
    const batch: Batch = {
      state,
      since: this.#since,
      responses: responsesOf(state, difference, (type) => {
        batch.nonce = `${++this.#nonces} ${type === ADDRESS_TYPE ? "address" : "resource"}`;
        return batch.nonce;
      }),
      nonce: "",
    };
    this.#batch = batch;
    this.#sent = state;
    this.#metrics.pushes++;
    this.#write();
    this.#onChange();
  }

  #write(): void {
    const { responses } = this.#batch ?? {};
    if (responses === undefined) return;
    while (!this.#blocked) {
      const next = responses.next();
      if (next.done === true) return;
      this.#blocked = !this.#writer.write(next.value);
    }
  }

  /** Only the reply to the last response of a batch counts: the proxy applies all of it or nothing. */
  #answer(type: TypeUrl, { responseNonce, errorDetail }: DeltaDiscoveryRequest): void {
    const batch = this.#batch?.nonce === responseNonce ? this.#batch : undefined;
    const state = batch?.state ?? (this.#answered?.nonce === responseNonce ? this.#answered.state : undefined);
    if (errorDetail === undefined) this.#acknowledgedTypes[type] = (this.#batch?.state ?? this.#sent)?.version ?? "";
    if (state === undefined) return;
    const { version, gateways } = state;
    if (batch !== undefined) {
      this.#batch = undefined;
      // Rejected or not, the proxy has received it.
      this.#known = batch.state.types;
      this.#answered = { nonce: responseNonce, state: { version, gateways } };
      this.#reasons = 0;
      this.#metrics.pushDurations.observe((performance.now() - batch.since) / 1000);
    }
    const heldBack = errorDetail === undefined ? [] : heldBackIn(errorDetail, gateways);
    if (errorDetail === undefined || heldBack.length > 0) {
      this.#acknowledged = version;
      this.#runs(this.#newest?.version === version ? this.#newest.gateways : gateways, heldBack);
      for (const each of TYPES) this.#acknowledgedTypes[each] = version;
    }
    if (errorDetail === undefined) this.#rejection = null;
    else {
      this.#metrics.rejects++;
      const message = shortened(errorDetail.message);
      // A repeat that fails as before is nothing new.
      if (this.#rejection?.version === version && this.#rejection.message === message && batch === undefined) return;
      if (++this.#reasons > MAX_REASONS) return;
      this.#rejection = { at: new Date().toISOString(), version, message, heldBack };
    }
    this.#onChange();
    this.#begin();
  }

  #runs(gateways: readonly string[], heldBack: readonly HeldBack[] = []): void {
    this.#running = gateways;
    this.#serving =
      heldBack.length === 0 ? gateways : gateways.filter((key) => heldBack.every(({ gateway }) => gateway !== key));
  }
}

/** Which of the Gateways of a state the proxy rejected it for. */
function heldBackIn({ details }: Status, gateways: readonly string[]): readonly HeldBack[] {
  const found = new Map<string, HeldBack>();
  for (const { typeUrl, value } of details) {
    if (typeUrl !== HELD_BACK_TYPE) continue;
    const { gateway, reason } = fromBinary(HeldBackSchema, value);
    if (gateways.includes(gateway)) found.set(gateway, { gateway, reason: shortened(reason) });
  }
  return [...found.values()];
}

function shortened(text: string): string {
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text;
}
