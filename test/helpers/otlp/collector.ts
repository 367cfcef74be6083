import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { EXPORT_METHODS } from "../../../src/telemetry/otlp/messages.ts";
import { GrpcServer } from "../grpc-server.ts";
import { attributesOf, type Decoded, decode, listOf } from "./decode.ts";

/** A span or a log record as a collector has received it. */
export interface Entry extends Decoded {}

/** One export. */
export interface Export {
  readonly signal: "traces" | "logs";
  /** Path over HTTP; `` over gRPC. */
  readonly path: string;
  /** Headers, or metadata. */
  readonly headers: IncomingHttpHeaders | Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly scope: Decoded;
  readonly entries: readonly Entry[];
}

/** A collector's response to an export: an HTTP status with headers; default 200. */
export type Answer = (export_: Export) => { readonly status: number; readonly headers?: Record<string, string> };

const PATIENCE_MS = 60_000;

/** A collector on 127.0.0.1 that records exports, decoded as the published messages. */
export class TestCollector implements AsyncDisposable {
  readonly port: number;
  readonly exports: Export[] = [];
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.#close = close;
  }

  static async http(answer: Answer = () => ({ status: 200 }), port = 0): Promise<TestCollector> {
    let collector: TestCollector | undefined;
    const server: Server = createServer((request, response) => {
      const path = request.url ?? "";
      buffer(request).then(
        (body) => {
          const signal = path.includes("logs") ? "logs" : "traces";
          const received = { ...decodeExport(signal, body), path, headers: request.headers };
          const { status, headers = {} } = answer(received);
          if (status < 300) collector?.exports.push(received);
          response.writeHead(status, { "content-type": "application/x-protobuf", ...headers }).end();
        },
        () => {},
      );
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    collector = new TestCollector((server.address() as AddressInfo).port, () => {
      server.close();
      server.closeAllConnections();
    });
    return collector;
  }

  /** `refuse`: throws to respond with an error. */
  static async grpc(refuse: () => void = () => {}, port = 0): Promise<TestCollector> {
    let collector: TestCollector | undefined;
    const method = (signal: "traces" | "logs") => ({
      unary: (message: Buffer, metadata: { getMap(): Record<string, unknown> }): Uint8Array => {
        refuse();
        collector?.exports.push({ ...decodeExport(signal, message), path: "", headers: metadata.getMap() });
        return new Uint8Array(0);
      },
    });
    const server = await GrpcServer.start(
      { [EXPORT_METHODS.traces]: method("traces"), [EXPORT_METHODS.logs]: method("logs") },
      port,
    );
    collector = new TestCollector(server.port, () => server.stop());
    return collector;
  }

  get entries(): readonly Entry[] {
    return this.exports.flatMap(({ entries }) => entries);
  }

  /** Waits until `condition` is true for the exports so far; for at most 20 s. */
  async until(condition: (entries: readonly Entry[]) => boolean): Promise<readonly Entry[]> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!condition(this.entries)) {
      if (Date.now() > deadline) throw new Error(`the collector has only ${this.entries.map(({ name }) => name)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return this.entries;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }
}

function decodeExport(signal: "traces" | "logs", bytes: Uint8Array): Omit<Export, "path" | "headers"> {
  const traces = signal === "traces";
  const message = decode(
    traces
      ? "opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest"
      : "opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest",
    bytes,
  );
  const [of = {}] = listOf(message[traces ? "resource_spans" : "resource_logs"]);
  const [scoped = {}] = listOf(of[traces ? "scope_spans" : "scope_logs"]);
  return {
    signal,
    resource: attributesOf((of.resource as Decoded).attributes),
    scope: scoped.scope as Decoded,
    entries: listOf(scoped[traces ? "spans" : "log_records"]),
  };
}
