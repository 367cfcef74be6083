/**
 * Writes to the handle of a socket without its stream. The handle is an undocumented part of Node: node-internals.ts finds it, and makes
 * a writer only if the self-check has confirmed that this Node supports it.
 */
import { getSystemErrorName } from "node:util";

/** Is notified when writes that the system did not take at once have ended. */
export interface DirectWriteSink {
  /** The system has taken everything. */
  onWritten(): void;
  /** Nothing more can be written, unless the sink outlives the failure. May be called before the write returns. */
  onWriteFailure(error: NodeJS.ErrnoException): void;
}

/**
 * Passes bytes to a socket's handle. May only be used while the stream has nothing to write, is not corked, and has not ended; bytes
 * written to the stream afterwards follow these.
 */
export interface DirectWriter {
  /** While `pending`, the stream may not write either: the handle takes one write at a time. */
  readonly exclusive: boolean;
  /** Bytes of the last write that the system has not taken yet; until then, another write has to wait or use the stream. */
  readonly pending: number;
  /** One byte for each character. */
  writeText(text: string): void;
  /** `release` is called once `bytes` may be reused: at once if the system takes them. */
  writeBytes(bytes: Buffer, release?: () => void): void;
  /** The same for `pieces`, one after the other, `length` bytes in all: the system is called once. */
  writePieces(pieces: readonly Buffer[], length: number, release: () => void): void;
}

/** The state of the handle that was called last, by index, and the class of write requests. */
export interface StreamBinding {
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
  readonly WriteWrap: new () => object;
}

export interface WritableHandle {
  /** Both return 0 or an error number. */
  writeLatin1String(request: object, text: string): number;
  writeBuffer(request: object, bytes: Buffer): number;
  /** `allBuffers`: no piece is text. */
  writev(request: object, pieces: readonly Buffer[], allBuffers: true): number;
}

/** A write request of the handle. */
interface WriteRequest {
  oncomplete: (this: WriteRequest, status: number) => void;
  writer: HandleWriter | undefined;
  /** Status of a write that has ended inside the call; undefined = it has not. */
  status: number | undefined;
  /** Keeps the bytes in memory while they are being written. */
  bytes: Buffer | readonly Buffer[] | undefined;
}

/**
 * A stream creates several objects and a tick for each write. Bytes that the system takes at once need none of them, not even a new
 * request: libuv tries to write before it queues.
 */
export class HandleWriter implements DirectWriter {
  readonly #handle: WritableHandle;
  readonly #sink: DirectWriteSink;
  readonly #stream: StreamBinding;
  readonly exclusive: boolean;
  #release: (() => void) | undefined;
  pending = 0;

  constructor(handle: WritableHandle, exclusive: boolean, sink: DirectWriteSink, binding: StreamBinding) {
    this.exclusive = exclusive;
    this.#handle = handle;
    this.#sink = sink;
    this.#stream = binding;
  }

  writeText(text: string): void {
    const request = spareRequest ?? newRequest(this.#stream);
    const status = this.#handle.writeLatin1String(request, text);
    this.#dispatched(request, status, text.length, undefined, undefined);
  }

  writeBytes(bytes: Buffer, release?: () => void): void {
    const request = spareRequest ?? newRequest(this.#stream);
    const status = this.#handle.writeBuffer(request, bytes);
    this.#dispatched(request, status, bytes.length, bytes, release);
  }

  writePieces(pieces: readonly Buffer[], length: number, release: () => void): void {
    const request = spareRequest ?? newRequest(this.#stream);
    const status = this.#handle.writev(request, pieces, true);
    this.#dispatched(request, status, length, pieces, release);
  }

  #dispatched(
    request: WriteRequest,
    status: number,
    length: number,
    bytes: Buffer | readonly Buffer[] | undefined,
    release: (() => void) | undefined,
  ): void {
    const { streamBaseState, kLastWriteWasAsync } = this.#stream;
    if (status === 0 && streamBaseState[kLastWriteWasAsync] !== 0) {
      spareRequest = undefined;
      request.writer = this;
      request.bytes = bytes;
      this.pending = length;
      this.#release = release;
      // If a write fails below TLS, TLS ends it inside the call, yet reports that it waits.
      if (request.status !== undefined) writeEnded.call(request, request.status);
      return;
    }
    spareRequest = request;
    release?.();
    if (status !== 0) this.#sink.onWriteFailure(writeError(status));
  }

  ended(status: number): void {
    const release = this.#release;
    this.#release = undefined;
    this.pending = 0;
    release?.();
    if (status === 0) this.#sink.onWritten();
    else this.#sink.onWriteFailure(writeError(status));
  }
}

/** The request of this thread, which is reused unless its write had to wait. */
let spareRequest: WriteRequest | undefined;

function newRequest({ WriteWrap }: StreamBinding): WriteRequest {
  return Object.assign(new WriteWrap(), {
    oncomplete: writeEnded,
    writer: undefined,
    status: undefined,
    bytes: undefined,
  });
}

function writeEnded(this: WriteRequest, status: number): void {
  this.bytes = undefined;
  if (this.writer === undefined) this.status = status;
  else this.writer.ended(status);
}

function writeError(status: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`write ${code}`), { errno: status, code, syscall: "write" });
}
