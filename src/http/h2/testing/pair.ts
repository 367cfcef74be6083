/** Two connections of the engine that talk to each other over loopback, with streams that record their events. */
import type { Acceptor } from "../../../net/acceptor.ts";
import { connect } from "../../../net/connect.ts";
import { acceptLocally } from "../../../net/testing/acceptor.ts";
import { admitted } from "../../../net/testing/egress.ts";
import type { Transport } from "../../../net/transport.ts";
import { Http2Connection } from "../connection.ts";
import type { FieldSection } from "../hpack/decoder.ts";
import type { Http2Owner, Http2Settings, Role } from "../settings.ts";
import { Http2Stream } from "../stream.ts";

export const SETTINGS: Http2Settings = {
  streamWindow: 64 * 1024,
  frugalWindow: 64 * 1024,
  largestWindow: 64 * 1024,
  connectionWindow: 256 * 1024,
  maxFrameSize: 16_384,
  maxHeaderListSize: 64 * 1024,
  maxFields: 200,
  maxStreams: 100,
  connectProtocol: false,
};

/** Records its events. `act` may react to each of them. */
export class NotingStream extends Http2Stream {
  readonly sections: string[][] = [];
  readonly events: string[] = [];
  bytes = 0;
  text = "";
  resetCode: number | undefined;
  fault: unknown;
  act: (event: string, stream: NotingStream) => void = () => {};

  onHeaders(section: FieldSection, endStream: boolean): void {
    this.sections.push(section.fields);
    this.#note(endStream ? "headers, end" : "headers");
  }

  onData(buffer: Buffer, from: number, to: number): void {
    this.bytes += to - from;
    if (this.text.length < 1000) this.text += buffer.toString("latin1", from, to);
    this.#note("data");
  }

  onEnd(): void {
    this.#note("end");
  }

  onBatch(): void {
    this.#note("batch");
  }

  onReset(code: number): void {
    this.resetCode = code;
    this.#note("reset");
  }

  onWritable(): void {
    this.#note("writable");
  }

  onFault(error: unknown): void {
    this.fault = error;
  }

  #note(event: string): void {
    this.events.push(event);
    this.act(event, this);
  }
}

/** One side. `accept` makes the streams that the peer opens. */
export class Side implements Http2Owner {
  readonly connection: Http2Connection;
  readonly transport: Transport;
  readonly streams: NotingStream[] = [];
  readonly gone: Http2Stream[] = [];
  error: { readonly code: number; readonly message: string } | undefined;
  goAway: { readonly lastStream: number; readonly code: number } | undefined;
  closed = false;
  fault: unknown;
  accept: (stream: NotingStream) => void = () => {};

  constructor(role: Role, transport: Transport, settings: Partial<Http2Settings> = {}) {
    this.transport = transport;
    this.connection = new Http2Connection(role, transport, { ...SETTINGS, ...settings }, this);
  }

  onStream(): NotingStream {
    const stream = new NotingStream();
    this.streams.push(stream);
    this.accept(stream);
    return stream;
  }

  onSettings(): void {}

  onGoAway(lastStream: number, code: number): void {
    this.goAway = { lastStream, code };
  }

  onStreamGone(stream: Http2Stream): void {
    this.gone.push(stream);
  }

  onConnectionError(code: number, message: string): void {
    this.error = { code, message };
  }

  onClosed(): void {
    this.closed = true;
  }

  onFault(error: unknown): void {
    this.fault = error;
  }

  /** Client: opens a stream with a GET, or with a POST whose body follows. */
  request(method = "GET", fields: readonly string[] = []): NotingStream {
    const stream = new NotingStream();
    this.streams.push(stream);
    const pseudo = [":method", method, ":scheme", "http", ":path", "/", ":authority", "a.example"];
    this.connection.open(stream, pseudo, fields, method === "GET");
    return stream;
  }
}

/** A server of the engine on a free port. */
export class TestServer implements Disposable {
  readonly sides: Side[] = [];
  readonly #acceptor: Acceptor;

  private constructor(acceptor: Acceptor) {
    this.#acceptor = acceptor;
  }

  static async start(onSide: (side: Side) => void, settings?: Partial<Http2Settings>): Promise<TestServer> {
    const acceptor = await acceptLocally((transport) => {
      const side = new Side("server", transport, settings);
      server.sides.push(side);
      onSide(side);
      return side.connection;
    });
    const server = new TestServer(acceptor);
    return server;
  }

  get port(): number {
    return this.#acceptor.port;
  }

  [Symbol.dispose](): void {
    this.#acceptor.close();
    for (const side of this.sides) side.connection.destroy("the test is over");
  }
}

interface Pair extends Disposable {
  readonly client: Side;
  readonly server: Side;
}

/** Connects two sides. `onServer` prepares the server before any bytes arrive. */
export async function connectPair(
  onServer: (side: Side) => void = () => {},
  settings: { readonly client?: Partial<Http2Settings>; readonly server?: Partial<Http2Settings> } = {},
): Promise<Pair> {
  const server = await TestServer.start(onServer, settings.server);
  let client: Side | undefined;
  await new Promise<void>((resolve, reject) => {
    connect(admitted({ host: "127.0.0.1", port: server.port }), 0, {
      onConnect: (transport) => {
        client = new Side("client", transport, settings.client);
        resolve();
        return client.connection;
      },
      onClose: reject,
    });
  });
  await until(() => server.sides.length === 1, "the server's side");
  const [side] = server.sides;
  if (client === undefined || side === undefined) throw new Error("not connected");
  const connected = client;
  return {
    client: connected,
    server: side,
    [Symbol.dispose]: () => {
      connected.connection.destroy("the test is over");
      server[Symbol.dispose]();
    },
  };
}

/** Waits until `condition` holds. Rejects after a bounded time. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise(setImmediate);
  }
}
