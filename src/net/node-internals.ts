/**
 * All undocumented parts of Node.js that this project uses, with those of TLS servers and of `node:zlib` beside it. No other file uses a name that begins with an underscore or an internal
 * method of Node; a test searches `src` for them.
 *
 * Each part is probed once, when the module loads: by its behavior where possible, not just by its name. A part that this Node lacks
 * is replaced by documented API. Everything then works, but costs more CPU or notices broken connections later; `missingInternals`
 * lists the parts, and the gateway logs them at start-up.
 *
 * Measurements: Node 24, one core, requests of 102 bytes that only pass through, unless said otherwise.
 */
import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";
import type { Duplex } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type DirectWriter,
  type DirectWriteSink,
  HandleWriter,
  type StreamBinding,
  type WritableHandle,
} from "./direct-writer.ts";

/** A part of Node that is missing, and the effect of that. */
interface MissingInternal {
  readonly name: string;
  readonly effect: string;
}

/** What `probe` found. */
interface Available {
  readonly latin1Slice: boolean;
  readonly latin1Write: boolean;
  readonly buffers: boolean;
  readonly peerNames: boolean;
  readonly writes: boolean;
  readonly streamState: boolean;
}

// ── text and bytes ──

/** The methods behind `toString("latin1")` and `write(text, offset, "latin1")`. */
interface Latin1Methods {
  latin1Slice(from: number, to: number): string;
  latin1Write(text: string, offset: number, length: number): number;
}

// Every buffer has them; Node's types leave them out.
const methodsOf = (buffer: Buffer): Latin1Methods => buffer as unknown as Latin1Methods;

/**
 * Bytes to text, one character per byte. `toString("latin1")` looks the encoding up by name first: 0.05 µs more a call, and
 * it is called several times for each request.
 */
function internalLatin1Slice(buffer: Buffer, from: number, to: number): string {
  return methodsOf(buffer).latin1Slice(from, to);
}

function documentedLatin1Slice(buffer: Buffer, from: number, to: number): string {
  return buffer.toString("latin1", from, to);
}

/**
 * Writes the first `length` characters of `text`, all below U+0100, to `buffer` from `at` on, where they must fit. Called for each head.
 */
function internalLatin1Write(buffer: Buffer, text: string, at: number, length = text.length): void {
  methodsOf(buffer).latin1Write(text, at, length);
}

function documentedLatin1Write(buffer: Buffer, text: string, at: number, length = text.length): void {
  buffer.write(text, at, length, "latin1");
}

// ── sockets ──

/** A reader that provides the buffers, as for the option `onread` of sockets. */
export interface BufferedReader {
  /** The buffer for the next read; undefined = the same again. */
  nextBuffer(): Buffer | undefined;
  /** `bytes[0, length)` was read. */
  take(bytes: Buffer, length: number): void;
}

/**
 * Options of `net.Socket` to read into the buffers of `reader`. Documented, except that `buffer()` may return undefined to
 * keep the buffer. Node would register a returned one with the handle again, once per read.
 */
export function onreadOptions(reader: BufferedReader): OnReadOpts {
  return {
    buffer: () => reader.nextBuffer() as Uint8Array,
    callback: (length, bytes) => {
      reader.take(bytes as Buffer, length);
      return true;
    },
  };
}

/** A socket's handle: that of libuv, or of the TLS around it. */
interface Handle {
  readonly [method: string]: unknown;
  /** Returns 0 or an error number. */
  getpeername?(out: object): number;
  useUserBuffer?(buffer: Buffer): void;
  /** Called after each read, even of nothing; returns the buffer for the next one, or undefined for the same again. */
  onread?: OnRead;
}

type OnRead = (this: Handle, bytes?: ArrayBuffer) => unknown;

/** `_handle` is the socket's handle, null before the connection and after its close. */
interface HandleOwner {
  _handle?: Handle | null;
}

// Every socket is such an owner; Node's types leave `_handle` out.
const handleOf = (socket: object): Handle | null => (socket as HandleOwner)._handle ?? null;

/** The properties in which a socket keeps its option `onread`. Their keys are symbols that Node does not export. */
interface ReadKeys {
  /** The buffer that is read into. */
  readonly buffer: symbol;
  /** The function that gives the next buffer. */
  readonly next: symbol;
  /** The function that takes what was read. */
  readonly taken: symbol;
}

/**
 * Makes a socket that is connected, or the stream inside TLS, read into the buffers of `reader`. `net.Server` makes its sockets
 * itself, and they allocate a buffer for every read; only `new Socket` and `connect` take `onread`, and those of TLS around a
 * socket do not. 13 µs of CPU instead of 15 for a request; inside TLS a tenth of the CPU.
 *
 * False if that is impossible: then the stream must be read by its `data` events.
 */
function internalReadInto(stream: Duplex, reader: BufferedReader): boolean {
  if (readKeys === undefined || stream.readableLength > 0) return false;
  if (!registerReader(stream, reader, readKeys)) return false;
  // Direct reads do not call these, which saves 150 bytes per connection.
  if (!sockets.readDirectly(stream, reader)) setReadCallbacks(stream, reader, readKeys);
  return true;
}

function registerReader(stream: Duplex, reader: BufferedReader, keys: ReadKeys): boolean {
  const handle = handleOf(stream);
  const register = handle?.useUserBuffer;
  if (typeof register !== "function" || !(keys.buffer in stream)) return false;
  const buffer = reader.nextBuffer();
  if (buffer === undefined) return false;
  Object.assign(stream, { [keys.buffer]: buffer });
  register.call(handle, buffer);
  return true;
}

function setReadCallbacks(stream: Duplex, reader: BufferedReader, keys: ReadKeys): void {
  const { buffer: next, callback } = onreadOptions(reader);
  Object.assign(stream, { [keys.next]: next, [keys.taken]: callback });
}

/**
 * Gives `reader` what is read without Node's JavaScript between them, once the socket reads into its buffers. Node still sees errors
 * and the end. With direct writes: a tenth of the CPU outside the kernel. False when that is impossible.
 */
function internalReadDirectly(stream: Duplex, reader: BufferedReader): boolean {
  const handle = handleOf(stream);
  const readByNode = handle?.onread;
  if (handle === null || typeof readByNode !== "function" || streamBinding === undefined || readKeys === undefined)
    return false;
  const { streamBaseState, kReadBytesOrError } = streamBinding;
  const { buffer: key } = readKeys;
  const properties = stream as object as Record<symbol, unknown>;
  let buffer = properties[key];
  if (!(buffer instanceof Buffer)) return false;
  handle.onread = function (this: Handle, bytes?: ArrayBuffer): unknown {
    const length = streamBaseState[kReadBytesOrError] as number;
    if (length <= 0) return readByNode.call(this, bytes);
    reader.take(buffer as Buffer, length);
    const next = reader.nextBuffer();
    if (next !== undefined) properties[key] = buffer = next;
    return next;
  };
  return true;
}

type SocketClass = new (options?: SocketConstructorOpts) => Socket;

function documentedReadInto(): boolean {
  return false;
}

function documentedReadDirectly(): boolean {
  return false;
}

/**
 * Whether the peer has reset the connection. Node reports that only while it reads, and a paused socket is not read: the
 * request would occupy its upstream until a timeout. The system forgets the peer's address with the reset, so `getpeername` fails.
 * (`socket.remoteAddress` would not: Node remembers it.) False if it cannot be determined.
 */
function internalWasReset(socket: object): boolean {
  const handle = handleOf(socket);
  return handle?.getpeername !== undefined && handle.getpeername({}) !== 0;
}

function documentedWasReset(): boolean {
  return false;
}

type WriteDone = (error?: Error | null) => void;

/** Decides about failed writes of a stream. */
export interface WriteGuard {
  /** A write failed earlier: what follows is discarded. */
  readonly writeFailed: boolean;
  /** Whether the stream outlives this failure; it is destroyed otherwise. */
  outlivesWriteFailure(error: NodeJS.ErrnoException): boolean;
}

/**
 * Lets `guard` decide the effect of a failed write on `stream`. Node destroys a stream whose write fails and discards what
 * it has read, so the response of a peer that responds early and closes would be lost (RFC 9112 9.5). `_write` and `_writev` are
 * documented for implementors of streams, not for replacement from outside, but there is no other place to catch the error.
 */
function internalGuardWrites(stream: Duplex, guard: WriteGuard): void {
  // A stream has one write under way at a time: its callback is kept here, so a write needs no closure.
  let done: WriteDone;
  const guarded: WriteDone = (error) => {
    done(error === null || error === undefined || guard.outlivesWriteFailure(error) ? null : error);
  };
  const { _write: write, _writev: writev } = stream;
  stream._write = (chunk, encoding, callback) => {
    done = callback;
    if (guard.writeFailed) done();
    else write.call(stream, chunk, encoding, guarded);
  };
  if (writev === undefined) return;
  stream._writev = (chunks, callback) => {
    done = callback;
    if (guard.writeFailed) done();
    else writev.call(stream, chunks, guarded);
  };
}

function documentedGuardWrites(): void {}

// ── writes without the stream ──

/**
 * Writes to the handle of a connected TCP or Unix socket, or of the TLS around it; undefined if the stream has to be used. TLS
 * never takes bytes at once, and a second write before the first has ended is fatal.
 */
function internalDirectWrites(stream: Duplex, sink: DirectWriteSink): DirectWriter | undefined {
  if (streamBinding === undefined || !(stream instanceof Socket)) return undefined;
  const handle = handleOf(stream);
  return isWritableHandle(handle) ? new HandleWriter(handle, "encrypted" in stream, sink, streamBinding) : undefined;
}

function documentedDirectWrites(): undefined {
  return undefined;
}

function isWritableHandle(handle: object | null): handle is WritableHandle {
  return handle !== null && "writeLatin1String" in handle && "writeBuffer" in handle && "writev" in handle;
}

/** The binding of Node's own streams; undefined if this Node has none or does not expose it. */
function findStreamBinding(): StreamBinding | undefined {
  const { binding } = process as { readonly binding?: (name: string) => Partial<StreamBinding> };
  try {
    const found = binding?.call(process, "stream_wrap") ?? {};
    const { streamBaseState, kReadBytesOrError, kLastWriteWasAsync, kLastWriteErr, WriteWrap } = found;
    return streamBaseState instanceof Int32Array &&
      typeof kReadBytesOrError === "number" &&
      typeof kLastWriteWasAsync === "number" &&
      WriteWrap !== undefined
      ? { streamBaseState, kReadBytesOrError, kLastWriteWasAsync, kLastWriteErr, WriteWrap }
      : undefined;
  } catch {
    return undefined;
  }
}

// ── self-check ──

/**
 * Probes the internals of a Node. `buffer` holds the bytes 41 E9 FF; `socketClass` makes sockets. Parameters, so that a test
 * can pass what a later Node may be like.
 */
export function probe(buffer: Buffer, socketClass: SocketClass): Available {
  const { latin1Slice, latin1Write } = methodsOf(buffer);
  const target = Buffer.alloc(4);
  return {
    latin1Slice: works(() => latin1Slice.call(buffer, 1, 3) === "\xe9\xff"),
    latin1Write: works(() => latin1Write.call(target, "A\xff", 0, 2) === 2 && target.readUInt16BE(0) === 0x41ff),
    buffers: works(() => readsInto(socketClass)),
    // Each call checks whether the handle has `getpeername`: not every kind of socket has a peer with a name.
    peerNames: works(() => "_handle" in new socketClass()),
    writes: works(() => typeof new socketClass()._write === "function"),
    streamState: works(() => streamBinding !== undefined && sharesState(socketClass, streamBinding)),
  };
}

/** Finds the properties by the values that a socket with `onread` has in them. */
function findReadKeys(socketClass: SocketClass): ReadKeys | undefined {
  const buffer = Buffer.alloc(1);
  const next = (): Buffer => buffer;
  const callback = (): boolean => true;
  const keyOf = (onread: OnReadOpts, value: unknown): symbol | undefined => {
    const socket = new socketClass({ onread });
    const properties = socket as unknown as Readonly<Record<symbol, unknown>>;
    return Object.getOwnPropertySymbols(socket).find((each) => properties[each] === value);
  };
  const keys = {
    buffer: keyOf({ buffer, callback }, buffer),
    next: keyOf({ buffer: next, callback }, next),
    taken: keyOf({ buffer, callback }, callback),
  };
  const { buffer: at, next: source, taken } = keys;
  return at === undefined || source === undefined || taken === undefined
    ? undefined
    : { buffer: at, next: source, taken };
}

/** Gives a socket a handle that records its calls, and checks that the buffer is registered and that pausing stops the handle. */
function readsInto(socketClass: SocketClass): boolean {
  const keys = findReadKeys(socketClass);
  if (keys === undefined) return false;
  const own = Buffer.alloc(1);
  let registered: unknown;
  let stopped = false;
  const handle = {
    reading: true,
    useUserBuffer: (buffer: unknown) => {
      registered = buffer;
    },
    readStart: () => 0,
    readStop: () => {
      stopped = true;
      return 0;
    },
  };
  // Node's types know only the documented kind of `handle`.
  const socket = new socketClass({ handle } as object as SocketConstructorOpts);
  const done = registerReader(socket, { nextBuffer: () => own, take: () => {} }, keys);
  handle.reading = true;
  stopped = false;
  socket.pause();
  const reads = done && handleOf(socket) === handle && registered === own && stopped;
  (socket as HandleOwner)._handle = null;
  socket.destroy();
  return reads;
}

/**
 * Gives a socket a handle that reports through the state of the binding, and checks that the socket writes with requests of its
 * class, its own or those of the handle, several pieces at once too, and reads from the state that a write waits and how much was read.
 */
function sharesState(socketClass: SocketClass, binding: StreamBinding): boolean {
  const { streamBaseState, kReadBytesOrError, kLastWriteWasAsync, kLastWriteErr, WriteWrap } = binding;
  const handleMakesRequests = kLastWriteErr !== undefined;
  const fits = (given: unknown): boolean => (handleMakesRequests ? given === null : given instanceof WriteWrap);
  const before = streamBaseState.slice();
  const made = Object.assign(new WriteWrap(), { writeStatus: null, oncomplete: undefined });
  let writes = false;
  let gathers = false;
  let length = 0;
  const handle: Handle = {
    reading: true,
    readStart: () => 0,
    useUserBuffer: () => {},
    writeLatin1String: (given: unknown, text: string) => {
      writes = fits(given) && text === "A\xff";
      streamBaseState[kLastWriteWasAsync] = 1;
      if (handleMakesRequests) streamBaseState[kLastWriteErr] = 0;
      return handleMakesRequests ? made : 0;
    },
    writev: (given: unknown, pieces: readonly unknown[], allBuffers: boolean) => {
      gathers = fits(given) && pieces[1] === onread.buffer && allBuffers;
      streamBaseState[kLastWriteWasAsync] = 0;
      return 0;
    },
  };
  const callback = (bytes: number): boolean => {
    length = bytes;
    return true;
  };
  const onread = { buffer: Buffer.alloc(8), callback };
  const socket = new socketClass({ handle, onread } as object as SocketConstructorOpts);
  socket.cork();
  socket.write(onread.buffer);
  socket.write(onread.buffer);
  socket.uncork();
  socket.write("A\xff", "latin1");
  const waits = socket.writableLength === 2 && (typeof made.oncomplete === "function") === handleMakesRequests;
  streamBaseState[kReadBytesOrError] = 7;
  handle.onread?.();
  streamBaseState.set(before);
  (socket as HandleOwner)._handle = null;
  socket.destroy();
  return writes && gathers && waits && length === 7;
}

function works(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

/** Describes the missing parts for operators. */
export function describeMissing(available: Available): readonly MissingInternal[] {
  const parts: readonly (MissingInternal & { readonly there: boolean })[] = [
    { there: available.latin1Slice, name: "Buffer.latin1Slice", effect: "reading heads costs more CPU" },
    { there: available.latin1Write, name: "Buffer.latin1Write", effect: "parsing heads costs more CPU" },
    { there: available.buffers, name: "buffers of sockets", effect: "each read allocates a buffer" },
    {
      there: available.peerNames,
      name: "getpeername",
      effect: "resets of paused clients are noticed by timeouts only",
    },
    { there: available.writes, name: "socket writes", effect: "early responses of upstreams that close may be lost" },
    { there: available.streamState, name: "stream_wrap", effect: "each read and write costs more CPU" },
  ];
  return parts.filter(({ there }) => !there).map(({ name, effect }) => ({ name, effect }));
}

const readKeys = findReadKeys(Socket);
const streamBinding = findStreamBinding();
const available = probe(Buffer.from([0x41, 0xe9, 0xff]), Socket);

/** The parts that the Node of this process lacks. */
export const missingInternals: readonly MissingInternal[] = describeMissing(available);

export const latin1Slice = available.latin1Slice ? internalLatin1Slice : documentedLatin1Slice;
export const latin1Write = available.latin1Write ? internalLatin1Write : documentedLatin1Write;

/** What sockets need of Node's internals. */
interface SocketInternals {
  readInto(stream: Duplex, reader: BufferedReader): boolean;
  readDirectly(stream: Duplex, reader: BufferedReader): boolean;
  wasReset(socket: object): boolean;
  guardWrites(stream: Duplex, guard: WriteGuard): void;
  directWrites(stream: Duplex, sink: DirectWriteSink): DirectWriter | undefined;
}

/** What documented API can do instead. */
export const DOCUMENTED: SocketInternals & { latin1Slice: typeof latin1Slice; latin1Write: typeof latin1Write } = {
  readInto: documentedReadInto,
  readDirectly: documentedReadDirectly,
  wasReset: documentedWasReset,
  guardWrites: documentedGuardWrites,
  directWrites: documentedDirectWrites,
  latin1Slice: documentedLatin1Slice,
  latin1Write: documentedLatin1Write,
};

/** The functions in use. They are called through this object, at most once per connection, so that tests can replace them. */
export const sockets: SocketInternals = {
  readInto: available.buffers ? internalReadInto : documentedReadInto,
  readDirectly: available.streamState ? internalReadDirectly : documentedReadDirectly,
  wasReset: available.peerNames ? internalWasReset : documentedWasReset,
  guardWrites: available.writes ? internalGuardWrites : documentedGuardWrites,
  directWrites: available.streamState ? internalDirectWrites : documentedDirectWrites,
};

// ── listening sockets ──

/** The file descriptor of a server that listens, to pass the socket on to a child process; undefined if this Node does not tell it. */
export function listeningFd(server: object): number | undefined {
  const fd: unknown = handleOf(server)?.fd;
  return typeof fd === "number" && fd >= 0 ? fd : undefined;
}

// ── garbage collection ──

let collector: (() => void) | undefined;

/**
 * Collects all garbage of this thread, synchronously. `gc` is documented for `--expose-gc`, which would make it global in the
 * whole process; a context that is created with the flag has it too. Without it, nothing is collected, and garbage counts as in use.
 */
export function collectGarbage(): void {
  if (collector === undefined) {
    setFlagsFromString("--expose-gc");
    const found: unknown = runInNewContext("typeof gc === 'function' ? gc : undefined");
    setFlagsFromString("--no-expose-gc");
    collector = typeof found === "function" ? (found as () => void) : () => {};
  }
  collector();
}
