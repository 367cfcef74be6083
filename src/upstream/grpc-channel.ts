import type * as Grpc from "@grpc/grpc-js";
import { GatewayError } from "../base/errors.ts";
import type { OnCancel } from "./on-cancel.ts";
import type { PoolTarget } from "./pool-target.ts";

/** What a bidirectional call brings. After `onEnd` nothing more follows. */
export interface GrpcStreamEvents {
  onMessage(message: Uint8Array): void;
  /** The service takes messages again after `write` returned false. */
  onDrain(): void;
  /** `error` is undefined when the service has ended the call with OK. */
  onEnd(error: GatewayError | undefined): void;
}

/** One bidirectional call. */
export interface GrpcStream {
  /** False = wait for `onDrain`. */
  write(message: Uint8Array): boolean;
  /** No more messages follow; those of the service still come. */
  end(): void;
  /** Ends the call in both directions; no event follows. */
  cancel(): void;
  pause(): void;
  resume(): void;
}

/** The library is large: it is loaded when a configuration first needs it. */
let library: Promise<typeof Grpc> | undefined;

const DEADLINE_EXCEEDED = 4;

/**
 * gRPC to one target over one HTTP/2 connection, which the first call opens. Messages are bytes, already encoded. After
 * `close` running calls may end; a late one, of a request that began before a reload, opens the connection once more.
 */
export class GrpcChannel {
  readonly #address: string;
  #client: Grpc.Client | undefined;
  #running = 0;
  #closed = false;

  constructor(target: PoolTarget) {
    this.#address =
      "path" in target
        ? `unix:${target.path}`
        : target.host.includes(":")
          ? `ipv6:[${target.host}]:${target.port}`
          : `dns:${target.host}:${target.port}`;
  }

  /** `method` as `/package.Service/Method`. Rejects with a GatewayError; never settles when it is cancelled. */
  async unary(method: string, message: Uint8Array, timeoutMs: number, onCancel: OnCancel): Promise<Uint8Array> {
    const grpc = await loadGrpc();
    return new Promise((resolve, reject) => {
      let cancelled = false;
      const call = this.#begin(grpc).makeUnaryRequest<Uint8Array, Buffer>(
        method,
        toBuffer,
        asIs,
        message,
        new grpc.Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error, answer) => {
          this.#done();
          if (cancelled) return;
          if (error === null && answer !== undefined) resolve(answer);
          else reject(failure(error));
        },
      );
      onCancel(() => {
        cancelled = true;
        call.cancel();
      });
    });
  }

  /** Opens a call with messages both ways; it has no deadline of its own. */
  async stream(method: string, events: GrpcStreamEvents): Promise<GrpcStream> {
    const grpc = await loadGrpc();
    const call = this.#begin(grpc).makeBidiStreamRequest<Uint8Array, Buffer>(
      method,
      toBuffer,
      asIs,
      new grpc.Metadata(),
      {},
    );
    let over = false;
    const finish = (error: GatewayError | undefined): void => {
      if (over) return;
      over = true;
      events.onEnd(error);
    };
    call.on("data", (message: Buffer) => {
      if (!over) events.onMessage(message);
    });
    call.on("drain", () => {
      if (!over) events.onDrain();
    });
    // A failed call reports the same by `status` too.
    call.on("error", (error: Grpc.ServiceError) => finish(failure(error)));
    call.on("status", (status: Grpc.StatusObject) => {
      this.#done();
      finish(status.code === 0 ? undefined : failure(status));
    });
    return {
      write: (message) => over || call.write(message),
      end: () => {
        if (!over) call.end();
      },
      cancel: () => {
        if (over) return;
        over = true;
        call.cancel();
        // A paused stream would never come to its end.
        call.resume();
      },
      pause: () => call.pause(),
      resume: () => call.resume(),
    };
  }

  close(): void {
    this.#closed = true;
    this.#closeIdle();
  }

  #begin(grpc: typeof Grpc): Grpc.Client {
    this.#running++;
    this.#client ??= new grpc.Client(this.#address, grpc.credentials.createInsecure(), {
      // Names are resolved like those of backends: no proxy of the environment, no configuration from DNS.
      "grpc.enable_http_proxy": 0,
      "grpc.service_config_disable_resolution": 1,
      // Its own connection, which ends with the channel.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 5000,
      "grpc.primary_user_agent": "tracegate",
    });
    return this.#client;
  }

  #done(): void {
    this.#running--;
    this.#closeIdle();
  }

  #closeIdle(): void {
    if (!this.#closed || this.#running > 0) return;
    this.#client?.close();
    this.#client = undefined;
  }
}

function loadGrpc(): Promise<typeof Grpc> {
  library ??= import("@grpc/grpc-js");
  return library;
}

function failure(error: { readonly code: number; readonly details: string } | null): GatewayError {
  const text = error === null ? "an empty answer" : `gRPC status ${error.code}: ${error.details}`;
  const code = error?.code === DEADLINE_EXCEEDED ? "TG_UPSTREAM_TIMEOUT" : "TG_UPSTREAM_FAILED";
  return new GatewayError(code, undefined, new Error(text));
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
