/** A connection in memory between the engine, which has a transport, and a peer that the test plays byte by byte. */
import { Duplex } from "node:stream";
import { type ByteStream, Transport, type TransportHandler } from "../../../src/net/transport.ts";

const ADDRESSES = {
  remoteAddress: "127.0.0.1",
  remotePort: 1,
  localAddress: "127.0.0.1",
  localPort: 2,
  rawAddress: "127.0.0.1",
  rawPort: 1,
};

/** The engine's end. */
export class Wire extends Duplex implements ByteStream {
  /** What the engine writes arrives, but counts as not taken by the socket. */
  congested = false;
  readonly #onBytes: (bytes: Buffer) => void;
  #taken: (() => void) | undefined;

  constructor(onBytes: (bytes: Buffer) => void) {
    super({ allowHalfOpen: true });
    this.#onBytes = onBytes;
  }

  /** Makes a transport over the wire. */
  connect<H extends TransportHandler>(onConnection: (transport: Transport) => H): H {
    let handler: H | undefined;
    Transport.over(this, ADDRESSES, (transport) => {
      handler = onConnection(transport);
      return handler;
    });
    if (handler === undefined) throw new Error("not connected");
    return handler;
  }

  /** The socket takes what was written. */
  relax(): void {
    this.congested = false;
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    // A copy: the engine uses its buffers again.
    this.#onBytes(Buffer.from(bytes));
    if (this.congested) this.#taken = done;
    else done();
  }

  resetAndDestroy(): void {
    this.destroy();
  }
}
