import type { Duplex } from "node:stream";
import { READ_SIZE, ReadBuffer } from "./read-buffer.ts";

/** Who gets what a socket reads. */
export interface ReadSink {
  /** `bytes[0, length)` is valid during the call only. Does not throw. */
  deliver(bytes: Buffer, length: number): void;
}

/** The buffer whose bytes a handler is looking at. */
let delivering: ReadBuffer | undefined;

/**
 * For a write of a part of `bytes`: what to call when it is over, or undefined when `bytes` does not belong to the reader
 * that is delivering now and has to be copied.
 */
export function lendDelivered(bytes: Buffer): (() => void) | undefined {
  return delivering?.lend(bytes);
}

/** What a socket reads into, and for whom. It exists before the transport, which needs the socket's addresses. */
export class SocketReader {
  readonly #buffer = new ReadBuffer();
  #length = 0;
  #sink: ReadSink | undefined;

  /** Node asks for the buffer of the first read, then after each read; no buffer = the same again, whatever its types say. */
  readonly buffer = (): Uint8Array => this.#buffer.next(this.#length) as Uint8Array;

  readonly callback = (length: number, bytes: Uint8Array): boolean => {
    const sink = this.#sink;
    if (sink === undefined) return true;
    this.#length = length;
    delivering = this.#buffer;
    sink.deliver(bytes as Buffer, length);
    delivering = undefined;
    return true;
  };

  attach(sink: ReadSink): void {
    this.#sink = sink;
  }

  /** Reads by events, for streams that cannot read into a buffer that is given, such as those of TLS, whose bytes are decrypted. */
  readPieces(stream: Duplex): void {
    stream.on("data", (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; at += READ_SIZE) {
        const piece = bytes.subarray(at, at + READ_SIZE);
        this.callback(piece.length, piece);
      }
    });
  }

  close(): void {
    this.#buffer.close();
  }
}
