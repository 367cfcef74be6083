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
  /**
   * Where the error of a write is that has returned a request. There since Node 26, whose handles take no request: they make one for a
   * write that has to wait, and return it.
   */
  readonly kLastWriteErr?: number | undefined;
  readonly WriteWrap: new () => object;
}

/** What a handle returns: 0, an error number or, since Node 26, the request of a write that waits. */
type WriteResult = number | WriteRequest;

export interface WritableHandle {
  writeLatin1String(request: object | null, text: string): WriteResult;
  writeBuffer(request: object | null, bytes: Buffer): WriteResult;
  /** `allBuffers`: no piece is text. */
  writev(request: object | null, pieces: readonly Buffer[], allBuffers: true): WriteResult;
}

/** A write request of the handle. */
interface WriteRequest {
  oncomplete: (this: WriteRequest, status: number) => void;
  writer: HandleWriter | undefined;
  /** Status of a write that has ended inside the call; null = it has not. Since Node 26 the handle sets it. */
  writeStatus: number | null;
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
    const result = this.#handle.writeLatin1String(requestFor(this.#stream), text);
    this.#dispatched(result, text.length, undefined, undefined);
  }

  writeBytes(bytes: Buffer, release?: () => void): void {
    const result = this.#handle.writeBuffer(requestFor(this.#stream), bytes);
    this.#dispatched(result, bytes.length, bytes, release);
  }

  writePieces(pieces: readonly Buffer[], length: number, release: () => void): void {
    const result = this.#handle.writev(requestFor(this.#stream), pieces, true);
    this.#dispatched(result, length, pieces, release);
  }

  #dispatched(
    result: WriteResult,
    length: number,
    bytes: Buffer | readonly Buffer[] | undefined,
    release: (() => void) | undefined,
  ): void {
    const { streamBaseState, kLastWriteWasAsync, kLastWriteErr = 0 } = this.#stream;
    let status: number;
    let waiting: WriteRequest | undefined;
    if (typeof result === "number") {
      status = result;
      waiting = streamBaseState[kLastWriteWasAsync] === 0 ? undefined : spareRequest;
    } else {
      status = streamBaseState[kLastWriteErr] ?? 0;
      waiting = result;
    }
    if (status === 0 && waiting !== undefined) {
      spareRequest = undefined;
      waiting.oncomplete = writeEnded;
      waiting.writer = this;
      waiting.bytes = bytes;
      this.pending = length;
      this.#release = release;
      // If a write fails below TLS, TLS ends it inside the call, yet reports that it waits.
      if (waiting.writeStatus !== null) writeEnded.call(waiting, waiting.writeStatus);
      return;
    }
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

/** The request of this thread, which is reused unless its write had to wait. Before Node 26. */
let spareRequest: WriteRequest | undefined;

/** What to give a handle that is called. */
function requestFor({ WriteWrap, kLastWriteErr }: StreamBinding): WriteRequest | null {
  if (kLastWriteErr !== undefined) return null;
  spareRequest ??= Object.assign(new WriteWrap(), {
    oncomplete: writeEnded,
    writer: undefined,
    writeStatus: null,
    bytes: undefined,
  });
  return spareRequest;
}

function writeEnded(this: WriteRequest, status: number): void {
  this.bytes = undefined;
  if (this.writer === undefined) this.writeStatus = status;
  else this.writer.ended(status);
}

function writeError(status: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`write ${code}`), { errno: status, code, syscall: "write" });
}
