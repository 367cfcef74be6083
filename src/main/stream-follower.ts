import { setFlagsFromString } from "node:v8";
import type { ConfigDifference } from "../admin/plane/config-difference.ts";
import type { ConfigError, ConfigStatus } from "../admin/plane/config-status.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Locate } from "../base/origin.ts";
import type { XdsSettings } from "../config/settings.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { RejectedParts } from "../ir/rejected-parts.ts";
import type { Egress } from "../net/egress.ts";
import type { Diagnostic } from "../translation/problems/diagnostics.ts";
import { WorkersDied } from "../worker/supervisor.ts";
import type { Answer, XdsClient } from "../xds/client/client.ts";
import { fleetOfClass, gatewayOf, type HeldBack } from "../xds/resources.ts";
import type { Loaded } from "./config-follower.ts";
import { DEADLY_REPEATS, type Follower, type Host, pauseBefore } from "./follower.ts";

/**
 * Keeps the configuration in effect equal to what the controller streams. One state is applied at a time; what arrives
 * meanwhile is merged into the next. A rejected state is reported to the controller and tried again, with growing pauses.
 */
export class StreamFollower implements Follower {
  readonly #settings: XdsSettings;
  readonly #customFunctions: string | undefined;
  /** Warnings about the proxy's own file. */
  #warnings: readonly Diagnostic[];
  readonly #host: Host;
  readonly #egress: Egress;
  readonly #log: Logger;
  #client: XdsClient | undefined;
  #generation = 0;
  #version: string | null = null;
  #appliedAt: string | null = null;
  #receivedAt: string | null = null;
  #lastError: ConfigError | null = null;
  #attempts = 0;
  #repeat: { readonly at: number; readonly timer: NodeJS.Timeout } | undefined;
  /** Something has arrived, or is to be tried again, since the last attempt began. */
  #due = false;
  #running: Promise<void> | undefined;
  /** Reports the result of a repeat for the responses of a rejected state. */
  #answerLater: Answer = () => {};
  /** Gateways that keep what they had before the state in effect. */
  #heldBack: readonly HeldBack[] = [];
  #closed = false;

  /** `egress`: for connections to the controller. `start`: the proxy's own file, whose functions the expressions of the stream may call. */
  constructor(settings: XdsSettings, start: Loaded, host: Host, egress: Egress, log: Logger) {
    this.#settings = settings;
    this.#customFunctions = start.configuration.frame.customFunctions;
    this.#warnings = start.warnings;
    this.#host = host;
    this.#egress = egress;
    this.#log = log;
  }

  readonly locate: Locate = () => undefined;

  async difference(): Promise<ConfigDifference> {
    return { unknown: "the configuration comes from a controller, not from a file" };
  }

  get status(): ConfigStatus {
    const { version = null, connected = false, problem = null } = this.#client ?? {};
    return {
      generation: this.#generation,
      appliedAt: this.#appliedAt,
      loadedAt: this.#receivedAt,
      hash: this.#version,
      diskDiffers: false,
      lastError: this.#lastError,
      nextRetryAt: this.#repeat === undefined ? null : new Date(this.#repeat.at).toISOString(),
      synchronized:
        connected && problem === null && version !== null && version === this.#version && this.#heldBack.length === 0,
      restartRequired: [],
      source: this.#settings.address,
      stream: {
        connected: connected && problem === null,
        problem,
        version,
        ...(this.#heldBack.length > 0 && { heldBack: this.#heldBack }),
      },
    };
  }

  /** Connects, without a time limit for the first state. */
  async begin(): Promise<void> {
    // A configuration is old by V8's measure when the next one takes its place, and V8 would let such garbage grow to a multiple of
    // what is in use. With 3,000 routes that arrive one after the other, and two workers: 35 MiB instead of 140 MiB. The price is
    // more collections while the configuration changes, on other threads: 36 ms of CPU per change instead of 27 ms.
    setFlagsFromString("--heap-growing-percent=20");
    // Only proxies of a controller pay for the stream.
    const { XdsClient } = await import("../xds/client/client.ts");
    if (this.#closed) return;
    const { address, rootCa, token, namespace, gateway, gatewayClass, pod } = this.#settings;
    const fleet = gatewayClass === undefined ? `${namespace}/${gateway}` : fleetOfClass(gatewayClass);
    this.#client = new XdsClient({
      address,
      rootCa,
      token,
      egress: this.#egress,
      node: {
        id: pod ?? fleet,
        cluster: fleet,
        metadata: {
          NAMESPACE: namespace,
          ...(gateway !== undefined && { GATEWAY: gateway }),
          ...(gatewayClass !== undefined && { GATEWAY_CLASS: gatewayClass }),
          ...(pod !== undefined && { POD_NAME: pod }),
        },
      },
      log: this.#log,
      onState: (changed) => this.#received(changed),
    });
  }

  reload(): Promise<void> {
    return this.#apply();
  }

  /** The controller fetches the documents. */
  documentWanted(url: string): void {
    this.#client?.wantDocument(url);
  }

  preview(id: string): Promise<PackedIr> | undefined {
    return this.#client?.preview(id, this.#customFunctions);
  }

  close(): void {
    this.#closed = true;
    this.#cancelRepeat();
    this.#client?.close();
  }

  #received(changed: boolean): void {
    this.#receivedAt = new Date().toISOString();
    // The controller may repeat what is in effect, as after a reconnection.
    if (!changed && this.#running === undefined && this.#lastError === null) {
      this.#version = this.#client?.version ?? null;
      this.#client?.takeResponses()();
      return;
    }
    if (changed) this.#attempts = 0;
    void this.#apply();
  }

  #apply(): Promise<void> {
    this.#due = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    while (this.#due && !this.#closed) {
      this.#due = false;
      await this.#applyOnce();
    }
  }

  /**
   * Applies the newest state. If that of some Gateways cannot be applied, they keep what they have, and the others get what is new; only if that is
   * all of them, as where each Gateway has its own proxies, the state is rejected as a whole.
   */
  async #applyOnce(): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    this.#cancelRepeat();
    const heldBack = new Map<string, HeldBack>();
    const answers: Answer[] = [];
    const answer: Answer = (...result) => {
      for (const each of answers) each(...result);
    };
    for (;;) {
      const { version } = client;
      if (version === undefined) return;
      answers.push(client.takeResponses());
      let configuration: PackedIr | undefined;
      try {
        configuration = client.pack(this.#customFunctions, new Set(heldBack.keys()));
        const isNew = !this.#isInEffect(version, heldBack);
        if (isNew) await this.#host.apply(this.#generation + 1, configuration);
        client.accept();
        this.#inEffect(version, heldBack, isNew ? configuration : undefined);
        this.#answerLater(this.#lastError?.message, this.#heldBack);
        answer(this.#lastError?.message, this.#heldBack);
        this.#answerLater = heldBack.size === 0 ? () => {} : answer;
        return;
      } catch (error) {
        if (configuration !== undefined && holdBack(error, configuration, heldBack)) continue;
        // Only the last responses are acknowledged if a repeat succeeds.
        this.#answerLater = answer;
        answer(messageOf(error));
        this.#failed(messageOf(error), version, error instanceof WorkersDied);
        return;
      }
    }
  }

  /** Whether a repeat has failed as before, for the same Gateways. */
  #isInEffect(version: string, heldBack: ReadonlyMap<string, HeldBack>): boolean {
    if (heldBack.size === 0 || heldBack.size !== this.#heldBack.length || version !== this.#version) return false;
    return this.#heldBack.every(({ gateway }) => heldBack.has(gateway));
  }

  /** `configuration`: undefined if it was in effect before. */
  #inEffect(version: string, heldBack: ReadonlyMap<string, HeldBack>, configuration: PackedIr | undefined): void {
    this.#version = version;
    this.#heldBack = [...heldBack.values()];
    if (heldBack.size === 0) {
      this.#lastError = null;
      this.#attempts = 0;
    }
    if (configuration !== undefined) {
      this.#generation++;
      this.#appliedAt = new Date().toISOString();
      this.#host.applied(configuration, this.#warnings);
      this.#warnings = [];
      this.#log.info("configuration applied", { generation: this.#generation, version });
    }
    if (heldBack.size === 0) this.#host.attempted();
    else this.#failed(this.#heldBack.map(({ gateway, reason }) => `Gateway ${gateway}: ${reason}`).join("; "), version);
  }

  #failed(message: string, version: string, isDeadly = false): void {
    const repeated = this.#lastError?.message === message;
    this.#lastError = { at: new Date().toISOString(), message, diagnostics: [] };
    this.#host.attempted();
    this.#attempts++;
    const pause = isDeadly && this.#attempts > DEADLY_REPEATS ? undefined : pauseBefore(this.#attempts);
    if (!repeated)
      this.#log.error(`cannot apply the configuration of the controller: ${message}`, {
        version,
        ...(pause !== undefined && { retryIn: `${pause}ms, then with growing pauses` }),
      });
    if (pause === undefined || this.#closed) return;
    const timer = setTimeout(() => void this.#apply(), pause).unref();
    this.#repeat = { at: Date.now() + pause, timer };
  }

  #cancelRepeat(): void {
    clearTimeout(this.#repeat?.timer);
    this.#repeat = undefined;
  }
}

/**
 * Adds the Gateways that a configuration was rejected for. False: the reason is not theirs, they are held back already, or no other Gateway is left.
 */
function holdBack(error: unknown, { frame }: PackedIr, heldBack: Map<string, HeldBack>): boolean {
  if (!(error instanceof RejectedParts)) return false;
  const before = heldBack.size;
  const listeners = frame.binds.flatMap((bind) => bind.listeners.map((listener) => ({ bind, listener })));
  for (const part of error.parts) {
    const concerned = listeners.filter(({ bind, listener }) =>
      "bind" in part ? bind.key === part.bind : listener.key === part.listener,
    );
    if (concerned.length === 0) return false;
    for (const gateway of concerned.map(({ listener }) => gatewayOf(listener)))
      if (!heldBack.has(gateway)) heldBack.set(gateway, { gateway, reason: part.reason });
  }
  return heldBack.size > before && listeners.some(({ listener }) => !heldBack.has(gatewayOf(listener)));
}
