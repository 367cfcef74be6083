import { isIP } from "node:net";
import type * as Grpc from "@grpc/grpc-js";
import { GatewayError } from "../base/errors.ts";
import type { HttpRequest } from "../http/message.ts";
import { grpcCredentials } from "./grpc-credentials.ts";
import { metadataOf } from "./grpc-metadata.ts";
import { GrpcStatusError } from "./grpc-status.ts";
import { type Address, type PoolTarget, targetName } from "./pool-target.ts";
import type { OnCancel } from "./upstream.ts";

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

/** What a call says besides its messages; no authority = that of the target. */
export type GrpcHead = Pick<HttpRequest, "authority" | "headers">;

const NO_HEAD: GrpcHead = { authority: "", headers: [] };

/**
 * gRPC to one target over one HTTP/2 connection, which the first call opens. Messages are bytes, already encoded. After
 * `close` running calls may end; a late one, of a request that began before a reload, opens the connection once more.
 */
export class GrpcChannel {
  readonly #target: PoolTarget;
  readonly #address: string;
  #client: Grpc.Client | undefined;
  #running = 0;
  #closed = false;

  constructor(target: PoolTarget) {
    this.#target = target;
    this.#address = addressOf(target.tunnel?.proxies ?? [target]);
  }

  /** `method` as `/package.Service/Method`. Rejects with a GatewayError; never settles when it is cancelled. */
  async unary(
    method: string,
    message: Uint8Array,
    timeoutMs: number,
    onCancel: OnCancel,
    head: GrpcHead = NO_HEAD,
  ): Promise<Uint8Array> {
    const grpc = await loadGrpc();
    const metadata = metadataOf(grpc, head.headers);
    return new Promise((resolve, reject) => {
      let cancelled = false;
      const call = this.#begin(grpc).makeUnaryRequest<Uint8Array, Buffer>(
        method,
        toBuffer,
        asIs,
        message,
        metadata,
        { deadline: Date.now() + timeoutMs, ...hostOf(head) },
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
  async stream(method: string, events: GrpcStreamEvents, head: GrpcHead = NO_HEAD): Promise<GrpcStream> {
    const grpc = await loadGrpc();
    const metadata = metadataOf(grpc, head.headers);
    const call = this.#begin(grpc).makeBidiStreamRequest<Uint8Array, Buffer>(
      method,
      toBuffer,
      asIs,
      metadata,
      hostOf(head),
    );
    let closed = false;
    const finish = (error: GatewayError | undefined): void => {
      if (closed) return;
      closed = true;
      events.onEnd(error);
    };
    call.on("data", (message: Buffer) => {
      if (!closed) events.onMessage(message);
    });
    call.on("drain", () => {
      if (!closed) events.onDrain();
    });
    // A failed call reports the same by `status` too.
    call.on("error", (error: Grpc.ServiceError) => finish(failure(error)));
    call.on("status", (status: Grpc.StatusObject) => {
      this.#done();
      finish(status.code === 0 ? undefined : failure(status));
    });
    return {
      write: (message) => closed || call.write(message),
      end: () => {
        if (!closed) call.end();
      },
      cancel: () => {
        if (closed) return;
        closed = true;
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
    this.#client ??= new grpc.Client(this.#address, grpcCredentials(grpc, this.#target), {
      // Also where the connection goes to a proxy.
      "grpc.default_authority": "path" in this.#target ? "localhost" : targetName(this.#target),
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

/** In the library's form; of several places those that it can know together, which are IP addresses of one family. */
function addressOf(places: readonly Address[]): string {
  const [first] = places;
  if (first === undefined) return "ipv4:";
  if ("path" in first) return `unix:${first.path}`;
  const family = isIP(first.host);
  if (family === 0) return `dns:${first.host}:${first.port}`;
  const same = places.filter((each) => "host" in each && isIP(each.host) === family);
  return `ipv${family}:${same.map(targetName).join(",")}`;
}

function hostOf({ authority }: GrpcHead): { readonly host?: string } {
  return authority === "" ? {} : { host: authority };
}

function loadGrpc(): Promise<typeof Grpc> {
  library ??= import("@grpc/grpc-js");
  return library;
}

function failure(status: Pick<Grpc.StatusObject, "code" | "details" | "metadata"> | null): GatewayError {
  if (status === null) return new GatewayError("TG_UPSTREAM_FAILED", undefined, new Error("an empty answer"));
  const [more] = status.metadata.get("grpc-status-details-bin");
  const cause = new GrpcStatusError(status.code, status.details, typeof more === "object" ? more : undefined);
  return new GatewayError(
    status.code === DEADLINE_EXCEEDED ? "TG_UPSTREAM_TIMEOUT" : "TG_UPSTREAM_FAILED",
    undefined,
    cause,
  );
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
