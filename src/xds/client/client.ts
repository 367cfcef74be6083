/**
 * The configuration stream, proxy's side. It connects with growing pauses, keeps what it has when the controller is away, and
 * resumes: the controller then sends only what differs. A batch of responses takes effect once its last one has arrived.
 */
import { messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { PackedIr } from "../../ir/packed-ir.ts";
import { ADDRESS_TYPE, type HeldBack, RESOURCE_TYPE, WANTED } from "../resources.ts";
import { Assembly } from "./assembly.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { type DeltaResponse, type ProxyNode, readResponse, writeRequest } from "./messages.ts";

/** Milliseconds before the next attempt to connect, doubled up to the longest; each pause is shortened by up to a half at random. */
const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 15_000;
/** Milliseconds to get a preview. */
const PREVIEW_MS = 30_000;

interface XdsClientOptions extends ConnectionOptions {
  readonly node: ProxyNode;
  readonly log: Logger;
  /** Called for every complete state; `changed`: it differs from the one before, or is the first. */
  readonly onState: (changed: boolean) => void;
  /** Uniform in [0, 1). */
  readonly random?: () => number;
}

/** Acknowledges responses, or rejects them. */
export type Answer = (error?: string, heldBack?: readonly HeldBack[]) => void;

/** Responses to be acknowledged or rejected, with their connection. */
interface Unanswered {
  readonly connection: Connection;
  readonly typeUrl: string;
  readonly nonce: string;
}

export class XdsClient {
  readonly #options: XdsClientOptions;
  readonly #assembly = new Assembly();
  #connection: Connection | undefined;
  #timer: NodeJS.Timeout | undefined;
  #attempts = 0;
  #batch: DeltaResponse[] = [];
  #unanswered: Unanswered[] = [];
  /** Of the last complete batch. */
  #version: string | undefined;
  #problem: string | undefined;
  /** Ends a preview that has not arrived. */
  readonly #previews = new Set<(reason: unknown) => void>();
  #closed = false;

  constructor(options: XdsClientOptions) {
    this.#options = options;
    this.#connect();
  }

  /** The version of the newest complete state; undefined before the first. */
  get version(): string | undefined {
    return this.#version;
  }

  /** Whether a stream is open. */
  get connected(): boolean {
    return this.#connection !== undefined;
  }

  /** Why there is no connection; undefined while there is one. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The newest complete state, in which some Gateways keep what was accepted last. Throws an Error for invalid resources. */
  pack(customFunctions: string | undefined, heldBack?: ReadonlySet<string>): PackedIr {
    return this.#assembly.pack(customFunctions, heldBack);
  }

  /** What was packed last is in effect. */
  accept(): void {
    this.#assembly.accept();
  }

  /**
   * Takes the responses that make up the newest state. The returned function acknowledges them, or rejects them with `error`; it
   * may be called again, e.g. after a repeat that succeeds. `heldBack`: the only Gateways for which they were not applied.
   */
  takeResponses(): Answer {
    const responses = this.#unanswered;
    this.#unanswered = [];
    return (error, heldBack) => {
      // Sends nothing on a connection that has ended.
      for (const { connection, typeUrl, nonce } of responses)
        connection.send(writeRequest({ typeUrl, nonce, ...(error !== undefined && { error, heldBack }) }));
    };
  }

  /** Tells the controller that a request needs a newer version of a document. */
  wantDocument(url: string): void {
    this.#connection?.send(writeRequest({ typeUrl: RESOURCE_TYPE, subscribe: [WANTED + url] }));
  }

  /**
   * A state that the controller keeps under this id and that is not applied. Only what differs is sent. Rejects if the controller does not
   * keep it any more, or cannot be reached in time.
   */
  preview(id: string, customFunctions: string | undefined): Promise<PackedIr> {
    const { address, rootCa, token, egress, node } = this.#options;
    const assembly = this.#assembly.copy();
    const batch: DeltaResponse[] = [];
    return new Promise((resolve, reject) => {
      let connection: Connection | undefined;
      const timer = setTimeout(() => end(new Error(`no preview within ${PREVIEW_MS / 1000} s`)), PREVIEW_MS);
      const end = (reason: unknown): void => {
        this.#previews.delete(end);
        clearTimeout(timer);
        connection?.close();
        reject(reason);
      };
      this.#previews.add(end);
      connection = new Connection(
        { address, rootCa, token, egress },
        {
          onMessage(message) {
            try {
              const response = readResponse(message);
              batch.push(response);
              if (response.version === "") return;
              assembly.update(batch);
              resolve(assembly.pack(customFunctions));
              end(undefined);
            } catch (error) {
              end(error);
            }
          },
          onEnd: (reason) => end(new Error(reason)),
        },
      );
      subscribe(connection, { ...node, metadata: { ...node.metadata, PREVIEW: id } }, assembly);
    });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const end of this.#previews) end(new Error("the gateway is shutting down"));
    this.#connection?.close();
    this.#connection = undefined;
  }

  #connect(): void {
    const { address, rootCa, token, egress, node } = this.#options;
    this.#batch = [];
    try {
      const connection: Connection = new Connection(
        { address, rootCa, token, egress },
        {
          onMessage: (message) => this.#receive(connection, message),
          onEnd: (reason) => this.#lost(reason),
        },
      );
      this.#connection = connection;
      subscribe(connection, node, this.#assembly);
    } catch (error) {
      this.#lost(messageOf(error));
    }
  }

  #lost(reason: string): void {
    this.#connection = undefined;
    this.#unanswered = [];
    if (this.#closed) return;
    const { log, address, random = Math.random } = this.#options;
    const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(this.#attempts++, 10));
    const pause = Math.round(longest * (1 - random() / 2));
    if (this.#problem !== reason)
      log.warn("no connection to the controller; the current configuration stays in effect", {
        address,
        reason,
        retryIn: `${pause}ms`,
      });
    this.#problem = reason;
    this.#timer = setTimeout(() => this.#connect(), pause);
  }

  #receive(connection: Connection, message: Uint8Array): void {
    const { log, address, onState } = this.#options;
    let response: DeltaResponse;
    try {
      response = readResponse(message);
      this.#batch.push(response);
      this.#unanswered.push({ connection, typeUrl: response.typeUrl, nonce: response.nonce });
      if (response.version === "") return;
      const batch = this.#batch;
      this.#batch = [];
      const changed = this.#assembly.update(batch);
      const first = this.#version === undefined;
      this.#version = response.version;
      if (this.#attempts > 0 || this.#problem !== undefined || first)
        log.info("connected to the controller", { address });
      this.#attempts = 0;
      this.#problem = undefined;
      onState(changed || first);
    } catch (error) {
      const reason = `the controller has sent something that this version cannot read: ${messageOf(error)}`;
      this.takeResponses()(reason);
      // A new connection requests them again, because only resources that were read count as known.
      connection.close();
      this.#lost(reason);
    }
  }
}

/** Requests everything that differs from what is in `assembly`. */
function subscribe(connection: Connection, node: ProxyNode, assembly: Assembly): void {
  for (const [index, typeUrl] of ([ADDRESS_TYPE, RESOURCE_TYPE] as const).entries())
    connection.send(
      writeRequest({
        typeUrl,
        ...(index === 0 && { node }),
        subscribe: ["*"],
        initialVersions: assembly.versions(typeUrl),
      }),
    );
}
