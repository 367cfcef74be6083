/** CONNECT on a port of tunnels: the bytes inside become a connection of another bind. */
import { isIP } from "node:net";
import { Duplex } from "node:stream";
import { httpDate } from "../../base/dates.ts";
import { ERRORS, type ErrorCode, type Reason } from "../../base/errors.ts";
import type { Activation } from "../../cel/index.ts";
import { type HttpRequest, hostOf } from "../../http/message/message.ts";
import { type Downstream, type ServerStream, TUNNEL } from "../../http/stream.ts";
import type { Addresses } from "../../net/addresses.ts";
import type { ByteStream } from "../../net/transport.ts";
import type { ShownVariables } from "../../telemetry/shown-variables.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import type { Services } from "../services/services.ts";
import { isLogged, logAccess } from "../telemetry/log-access.ts";
import { recordConnection } from "../telemetry/record-connection.ts";
import { connectionVariables, shownOfConnection } from "../variables/connection-variables.ts";

/** Does nothing: no write is waiting. */
const TAKEN = (): void => {};

/** A bind that serves connections inside tunnels. */
export interface TunnelTarget {
  /** Serves `stream` like an accepted connection with these addresses, or destroys it. */
  serve(stream: ByteStream, from: Addresses): void;
}

/** The binds of one worker. */
export interface TunnelTargets {
  /** The bind of a port; else the internal bind without port, if there is one (docs/configuration.md#connect). */
  findTarget(port: number): TunnelTarget | undefined;
}

/** One request on a bind that only accepts CONNECT (RFC 9110 9.3.6): its bytes go to another bind of this process. */
export class Tunnel implements ServerStream {
  readonly #downstream: Downstream;
  readonly #request: HttpRequest;
  readonly #bind: CompiledBind;
  readonly #targets: TunnelTargets;
  readonly #services: Services;
  readonly #startedAt = performance.now();
  #stream: TunnelStream | undefined;
  #status = 0;
  #reason: Reason = "Upstream";
  #code: ErrorCode | undefined;
  #error: string | undefined;
  /** Bytes of the response that rejects the tunnel. */
  #rejectionBytes = 0;
  closed = false;

  constructor(
    downstream: Downstream,
    request: HttpRequest,
    bind: CompiledBind,
    targets: TunnelTargets,
    services: Services,
  ) {
    this.#downstream = downstream;
    this.#request = request;
    this.#bind = bind;
    this.#targets = targets;
    this.#services = services;
  }

  /** For the task dump. */
  get activity(): { readonly phase: string; readonly ageMs: number; readonly request: string } {
    const { method, authority } = this.#request;
    return { phase: "tunnel", ageMs: performance.now() - this.#startedAt, request: `${method} ${authority}` };
  }

  /** What expressions of the access log can read. There is no route, and tunnelled bytes are not a message body. */
  get variables(): Activation {
    const { connection } = this.#downstream;
    const variables = connectionVariables(connection, connection.tls?.serverName ?? "", this.#services);
    return { ...variables, request: this.#request, response: { status: this.#status, headers: [] } };
  }

  /** The same, redacted for the access log. */
  get shown(): ShownVariables {
    return shownOfConnection(this.variables, this.#services);
  }

  /** Opens the tunnel, or responds with an error. Only the port of the authority matters: the targets are binds of this process. */
  start(): void {
    if (this.#request.method !== "CONNECT") this.#reject("TG_METHOD_NOT_ALLOWED", "allow", "CONNECT");
    // Content in a CONNECT has no meaning and may be smuggled tunnel bytes (RFC 9110 9.3.6).
    else if (this.#downstream.requestLength !== 0) this.#reject("TG_INVALID_REQUEST");
    else {
      const { authority } = this.#request;
      const port = Number(authority.slice(authority.lastIndexOf(":") + 1));
      const target = this.#targets.findTarget(port);
      if (target === undefined) this.#reject("TG_BIND_NOT_FOUND");
      else this.#open(target, insideAddresses(this.#downstream.connection, this.#request, port));
    }
  }

  // ── from the client ──

  onBody(buffer: Buffer, from: number, to: number): void {
    this.#stream?.receive(buffer, from, to);
  }

  /** Nothing to flush: the stream has its own buffers. */
  onBodyBatch(): void {}

  onBodyEnd(): void {
    this.#stream?.receiveEnd();
  }

  onClientDrain(): void {
    this.#stream?.onClientDrain();
  }

  onClientGone(code: ErrorCode, message: string): void {
    if (this.closed) return;
    this.#error = message;
    this.#code = code;
    this.#reason = ERRORS[code].reason;
    this.#stream?.destroy(new Error(message));
    this.#finish();
  }

  /** The 200 is sent before any bytes of the target (RFC 9110 9.3.6). */
  #open(target: TunnelTarget, from: Addresses): void {
    const downstream = this.#downstream;
    this.#status = 200;
    downstream.sendHead({ status: 200, headers: [] }, TUNNEL, null);
    downstream.flush();
    const stream = new TunnelStream(downstream);
    this.#stream = stream;
    stream.on("error", () => {});
    stream.on("close", () => this.#finish());
    target.serve(stream, from);
    downstream.readBody();
  }

  /** Sends an error response with the text of the table. The engine then closes the connection: bytes for the tunnel may follow. */
  #reject(code: ErrorCode, ...headers: readonly string[]): void {
    const { status, message, reason } = ERRORS[code];
    this.#status = status;
    this.#code = code;
    this.#reason = reason;
    this.#error = message;
    const body = Buffer.from(message);
    this.#rejectionBytes = body.length;
    const fields = [
      "content-type",
      "text/plain",
      ...headers,
      "content-length",
      String(body.length),
      "date",
      httpDate(),
    ];
    this.#downstream.sendHead({ status, headers: fields }, body.length, null);
    this.#downstream.sendBody(body, 0, body.length);
    this.#downstream.sendEnd([]);
    this.#finish();
  }

  #record(): void {
    const { recorder } = this.#services;
    if (recorder === undefined) return;
    recordConnection(
      {
        kind: "connection",
        generation: this.#bind.generation,
        protocol: "http",
        host: this.#request.authority,
        client: this.#downstream.connection,
        status: this.#status,
        code: this.#code,
        reason: this.#reason,
        received: this.#downstream.bodyBytes,
        sent: this.#stream?.bytesSent ?? this.#rejectionBytes,
        startedAt: this.#startedAt,
      },
      this.#bind.series.placeIn(recorder),
      recorder,
    );
  }

  /** Counts and logs the tunnel once, however it ended. */
  #finish(): void {
    if (this.closed) return;
    this.closed = true;
    const { metrics, accessLog } = this.#services;
    const seconds = (performance.now() - this.#startedAt) / 1000;
    const series = this.#bind.series.get(this.#request.method, this.#status, this.#reason);
    metrics.requests.count(series, seconds, 0, 0);
    this.#record();
    if (!isLogged(this.#bind, accessLog)) return;
    logAccess(
      {
        time: Date.now(),
        source: this.#downstream.connection.name,
        method: this.#request.method,
        host: this.#request.authority,
        version: this.#request.version,
        status: this.#status,
        protocol: "http",
        error: this.#error,
        reason: this.#reason,
        bytesReceived: this.#downstream.bodyBytes,
        bytesSent: this.#stream?.bytesSent ?? this.#rejectionBytes,
        durationMs: seconds * 1000,
      },
      this.#bind,
      accessLog,
      this,
    );
  }
}

/** A connection inside a tunnel comes from the tunnel's client and goes where the client asked for. */
function insideAddresses(outside: Addresses, connectHead: HttpRequest, localPort: number): Addresses {
  const { remoteAddress, remotePort, rawAddress, rawPort } = outside;
  const literal = hostOf(connectHead.authority).replace(/^\[|\]$/g, "");
  const localAddress = isIP(literal) === 0 ? outside.localAddress : literal;
  return { remoteAddress, remotePort, localAddress, localPort, rawAddress, rawPort, connectHead };
}

/**
 * The bytes inside a client's tunnel, as a stream that another bind serves like an accepted socket. The directions end independently;
 * a side that does not read stops the other.
 */
class TunnelStream extends Duplex {
  readonly #downstream: Downstream;
  bytesSent = 0;
  /** Continues to write once the client accepts bytes again. */
  #resumeWriting = TAKEN;

  constructor(downstream: Downstream) {
    super({ allowHalfOpen: true });
    this.#downstream = downstream;
  }

  // ── from the client ──

  /** `buffer[from, to)` is copied. */
  receive(buffer: Buffer, from: number, to: number): void {
    if (this.destroyed || this.push(Buffer.from(buffer.subarray(from, to)))) return;
    this.#downstream.pauseBody();
  }

  receiveEnd(): void {
    if (!this.destroyed) this.push(null);
  }

  onClientDrain(): void {
    const resume = this.#resumeWriting;
    this.#resumeWriting = TAKEN;
    resume();
  }

  // ── from the bind that serves the stream ──

  /** Like that of `net.Socket`: the client sees a reset, so a truncated body is not mistaken for a complete one. */
  resetAndDestroy(): this {
    return this.destroy();
  }

  /** The inner bind has room for more. */
  override _read(): void {
    this.#downstream.resumeBody();
  }

  /** `done` waits for the client, so a slow client stops the inner bind instead of filling memory. */
  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.bytesSent += bytes.length;
    const taken = this.#downstream.sendBody(bytes, 0, bytes.length);
    if (this.#downstream.flush() && taken) done();
    else this.#resumeWriting = done;
  }

  /** The inner bind has sent FIN; the client's direction stays open (half-close). */
  override _final(done: () => void): void {
    this.#downstream.sendEnd([]);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // The client may still be reading what was written: a reset now would destroy it (RFC 9112 9.6). What it sends is
    // discarded until it ends too.
    if (this.writableFinished) this.#downstream.resumeBody();
    else this.#downstream.abort();
    done(error);
  }
}
