/**
 * The buffers that transports read into. One buffer serves all small reads of the thread. A transport that fills it, because a
 * large body passes through, gets its own buffers: what it reads is forwarded without a copy, and it continues with another buffer
 * while the system takes the first. Measured: 1 GiB through one core in 0.6 of the time that copying takes. While the thread is
 * frugal, all reads are small.
 */
import type { Duplex } from "node:stream";
import { FRUGAL_BYTES, frugal } from "./frugality.ts";
import type { BufferedReader } from "./node-internals.ts";

/** Bytes that one read may deliver. */
export const READ_SIZE = 64 * 1024;
/** A read of this many bytes counts as part of a large body. */
const LARGE_READ = 16 * 1024;
/** Leases of a thread that may exist at once; transports beyond that share a buffer and copy. */
const MAX_LEASES = 256;
/** Unused leases that are kept. */
const MAX_SPARE = 16;

const SHARED = Buffer.allocUnsafeSlow(READ_SIZE);
/** The same memory, for reads of a frugal thread. */
const SMALL = SHARED.subarray(0, FRUGAL_BYTES);
const spare: Lease[] = [];
let leases = 0;

/** A buffer that belongs to one reader, and to the writes that were given parts of it, until all have released it. */
class Lease {
  readonly bytes = Buffer.allocUnsafeSlow(READ_SIZE);
  users = 1;

  readonly release = (): void => {
    if (--this.users > 0) return;
    if (spare.length < MAX_SPARE) spare.push(this);
    else leases--;
  };
}

function takeLease(): Lease | undefined {
  const used = spare.pop();
  if (used !== undefined) {
    used.users = 1;
    return used;
  }
  if (leases >= MAX_LEASES) return undefined;
  leases++;
  return new Lease();
}

/** Smaller pieces are copied into memory that Node pools. */
const POOLED_BY_NODE = 4096;

/** A copy in a buffer that is reused once `release` has been called. */
interface PooledCopy {
  readonly bytes: Buffer;
  readonly release: () => void;
}

/**
 * A copy of `bytes` in reused memory; undefined if that does not pay or no buffer is left. A new buffer for each DATA frame of an
 * upload over HTTP/2 cost a third of the thread's time in garbage collections.
 */
export function pooledCopy(bytes: Buffer): PooledCopy | undefined {
  if (frugal || bytes.length < POOLED_BY_NODE || bytes.length > READ_SIZE) return undefined;
  const lease = takeLease();
  if (lease === undefined) return undefined;
  bytes.copy(lease.bytes);
  return { bytes: lease.bytes.subarray(0, bytes.length), release: lease.release };
}

/** The buffer of one transport. */
export class ReadBuffer {
  #lease: Lease | undefined;
  /** The shared buffer that is read into while there is no lease; undefined before the first read. */
  #shared: Buffer | undefined;

  /** The buffer for the read after one of `length` bytes; undefined = the same again. The first call returns the first buffer. */
  next(length: number): Buffer | undefined {
    const lease = this.#lease;
    if (frugal) return this.#share(SMALL);
    // A small buffer that was full says nothing about the size of what passes through.
    if (length < LARGE_READ) return this.#share(SHARED);
    if (lease?.users === 1) return undefined;
    const own = takeLease();
    if (own === undefined) return this.#share(SHARED);
    this.close();
    this.#shared = undefined;
    this.#lease = own;
    return own.bytes;
  }

  #share(buffer: Buffer): Buffer | undefined {
    if (this.#shared === buffer) return undefined;
    this.close();
    this.#shared = buffer;
    return buffer;
  }

  /**
   * Lets a write keep a part of `bytes` after the read has been handled. Returns what to call when the write is over, or undefined
   * when `bytes` is not the lease of this reader and has to be copied.
   */
  lend(bytes: Buffer): (() => void) | undefined {
    const lease = this.#lease;
    if (lease?.bytes !== bytes) return undefined;
    lease.users++;
    return lease.release;
  }

  close(): void {
    this.#lease?.release();
    this.#lease = undefined;
  }
}

/** Receives what a socket reads. */
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

/** What a socket reads into, and the sink of its bytes. It exists before the transport, which needs the socket's addresses. */
export class SocketReader implements BufferedReader {
  readonly #buffer = new ReadBuffer();
  #length = 0;
  #sink: ReadSink | undefined;

  /** Node asks for the buffer of the first read, then after each read. */
  nextBuffer(): Buffer | undefined {
    return this.#buffer.next(this.#length);
  }

  take(bytes: Buffer, length: number): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    this.#length = length;
    delivering = this.#buffer;
    sink.deliver(bytes, length);
    delivering = undefined;
  }

  attach(sink: ReadSink): void {
    this.#sink = sink;
  }

  /** Reads by events, for streams that cannot read into a given buffer, such as those of TLS, whose bytes are decrypted. */
  readPieces(stream: Duplex): void {
    stream.on("data", (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; at += READ_SIZE) {
        const piece = bytes.subarray(at, at + READ_SIZE);
        this.take(piece, piece.length);
      }
    });
  }

  close(): void {
    this.#buffer.close();
  }
}
