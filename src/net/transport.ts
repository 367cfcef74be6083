/**
 * A connection's bytes, both ways: the boundary to the system's sockets, which acceptor.ts accepts and connect.ts opens. A transport delivers bytes in a buffer
 * that the next read overwrites, so a handler must consume, forward or copy them before it returns.
 */
import type { Duplex } from "node:stream";
import type { ProxiedAddresses } from "../base/proxy-protocol.ts";
import { type Addresses, Peer } from "./addresses.ts";
import { ByteQueue } from "./byte-queue.ts";
import type { DirectWriter, DirectWriteSink } from "./direct-writer.ts";
import { beginsToWait, FRUGAL_BYTES, frugal, waitsNoMore } from "./frugality.ts";
import { sockets, type WriteGuard } from "./node-internals.ts";
import { lendDelivered, pooledCopy, type ReadSink, SocketReader } from "./read-buffer.ts";

/** What a connection does with the events of its transport. No event follows `onClose`. */
export interface TransportHandler {
  /** `buffer[0, length)` is valid during the call only. */
  onData(buffer: Buffer, length: number): void;
  /** The peer sent FIN. The write side stays open until `end` or `destroy`. */
  onEnd(): void;
  /** After a write that returned false: everything written has been handed to the system. */
  onDrain(): void;
  onClose(error: Error | undefined): void;
  /** One of the calls above has thrown, which is a defect of the gateway. The transport is destroyed next. */
  onFault(error: unknown): void;
}

/** What code outside TLS reads of a certificate that was verified in the handshake. */
export interface PeerCertificate {
  readonly subject: string;
  readonly subjectCn: string | undefined;
  readonly issuer: string;
  readonly subjectAltNames: readonly string[];
  readonly spiffeId: string | undefined;
  /** Identity of a Kubernetes workload; see tls/client-certificate.ts. */
  readonly identity: unknown;
  readonly pem: string;
}

/** The TLS session of a transport, if TLS ends at the gateway. */
export interface TlsSession {
  /** The name that the client asked for (SNI), lower-case; `` = none. */
  readonly serverName: string;
  /** The protocol negotiated by ALPN (RFC 7301), such as `h2`; `` = the client or the listener offers none. */
  readonly protocol: string;
  /** Identifies how the client's certificate was validated: by which CAs, and whether it had to be valid; undefined = none was requested. */
  readonly clientValidation: string | undefined;
  /** The verified certificate; undefined if none was requested, or if the client may connect without a valid one. */
  readonly client: PeerCertificate | undefined;
}

const NOTHING = Buffer.alloc(0);

/** What transports need of sockets; streams inside the process implement it too. */
export interface ByteStream extends Duplex {
  /** Closes with RST, so a truncated body is not mistaken for a complete one. */
  resetAndDestroy(): unknown;
}

const TRANSPORT = Symbol("transport");

/** A stream with a reference to its transport, so that all share the listeners: closures take 250 bytes per connection. */
interface Attached extends ByteStream {
  readonly [TRANSPORT]: Transport;
}

/** Pieces for one write, and the callbacks that release their buffers afterwards. */
class Gathered {
  readonly pieces: Buffer[] = [];
  readonly #releases: (() => void)[] = [];
  /** Bytes. */
  length = 0;

  add(bytes: Buffer, release?: () => void): void {
    this.pieces.push(bytes);
    this.length += bytes.length;
    if (release !== undefined) this.#releases.push(release);
  }

  readonly release = (): void => {
    for (const release of this.#releases) release();
  };
}

export class Transport extends Peer implements ReadSink, WriteGuard, DirectWriteSink {
  readonly tls: TlsSession | undefined;
  readonly #socket: ByteStream;
  /** The TCP connection below TLS. */
  readonly #carrier: ByteStream;
  readonly #reader: SocketReader;
  /** Writes without the stream; undefined if that is impossible. */
  readonly #writer: DirectWriter | undefined;
  /** The same, until writing has ended or failed. */
  #direct: DirectWriter | undefined;
  #gathered: Gathered | undefined;
  /** The stream is corked until the current direct write has ended. */
  #streamHeld = false;
  /** The writing ends after the current direct write. */
  #endDue = false;
  /** A direct write has returned false: `onDrain` is due when it has ended. */
  #drainDue = false;
  #handler: TransportHandler | undefined;
  #paused = false;
  /** Reading is paused, and this source counts as waiting (frugality.ts). */
  #waits = false;
  /** Why the connection is about to close. */
  #failure: Error | undefined;
  /** Errors are ignored: see `tolerateErrors`. */
  #tolerant = false;
  /** A failed write need not end the connection. */
  #outlivesFailure = false;
  /** Why nothing more can be written, while the peer's last bytes are still being read. */
  #writeFailure: NodeJS.ErrnoException | undefined;
  /** An empty write is queued behind the waiting bytes; `onDrain` follows it. */
  #drainAwaited = false;
  /** Bytes that TLS had already decrypted when reading was paused; delivered first when it resumes. */
  #held: ByteQueue | undefined;
  #endHeld = false;
  /** Bytes inside TLS, if it ends here. */
  bytesRead = 0;
  bytesWritten = 0;

  constructor(socket: ByteStream, reader: SocketReader, from: Addresses, carrier = socket, tls?: TlsSession) {
    super(from);
    this.#socket = socket;
    this.#reader = reader;
    this.#carrier = carrier;
    this.tls = tls;
    this.#writer = sockets.directWrites(socket, this);
    this.#direct = this.#writer;
  }

  /**
   * The bytes of a stream that is not a plain socket: those inside TLS (`tls`, and `carrier` below it), after the handshake,
   * or inside a tunnel. `onConnection` returns their handler.
   */
  static over(
    stream: ByteStream,
    from: Addresses,
    onConnection: (transport: Transport) => TransportHandler,
    carrier?: ByteStream,
    tls?: TlsSession,
  ): void {
    const reader = new SocketReader();
    const transport = new Transport(stream, reader, from, carrier, tls);
    if (!sockets.readInto(stream, reader)) reader.readPieces(stream);
    transport.start(onConnection(transport));
  }

  /** Errors until the end of this turn do not concern the connection. */
  tolerateErrors(): void {
    this.#tolerant = true;
    setImmediate(() => {
      this.#tolerant = false;
    });
  }

  /** Starts events, and reading unless the handler has paused it already. */
  start(handler: TransportHandler): void {
    this.attach(handler);
    if (!this.#paused) this.#socket.resume();
  }

  attach(handler: TransportHandler): void {
    const socket = this.#socket;
    this.#handler = handler;
    this.#reader.attach(this);
    Object.assign(socket, { [TRANSPORT]: this });
    socket.on("end", Transport.#onEnd);
    socket.on("drain", Transport.#onDrain);
    socket.on("error", Transport.#onError);
    socket.on("close", Transport.#onClose);
  }

  static readonly #onEnd = function (this: Attached): void {
    this[TRANSPORT].#ended();
  };

  static readonly #onDrain = function (this: Attached): void {
    this[TRANSPORT].#call((handler) => handler.onDrain());
  };

  static readonly #onError = function (this: Attached, error: Error): void {
    const transport = this[TRANSPORT];
    if (transport.#tolerant) return;
    transport.#failure = error;
    // Node.js leaves a TLS stream open after a fatal alert or a damaged record, or ends it as if the peer had.
    transport.destroy();
  };

  static readonly #onClose = function (this: Attached): void {
    this[TRANSPORT].#closed();
  };

  #closed(): void {
    this.#reader.close();
    this.#gathered?.release();
    this.#gathered = undefined;
    this.#waitNoMore();
    this.#call((handler) => handler.onClose(this.#failure));
    // Node's TLS sockets survive some garbage collections after their close; their handlers need not.
    this.#handler = undefined;
  }

  /**
   * A peer that needs no more bytes may respond and close at once. Writes after that fail before its response has been read, and the
   * stream would discard the response. From now on, such a failure only ends the writing; the connection ends when the peer's bytes
   * have been read.
   */
  outliveFailedWrites(): void {
    this.#outlivesFailure = true;
    sockets.guardWrites(this.#socket, this);
  }

  // The transport is its own guard, because every write asks it. V8 keeps an object literal with a getter that is a closure as a
  // dictionary; its look-ups cost 0.1 to 0.3 µs for a request.

  get writeFailed(): boolean {
    return this.#writeFailure !== undefined;
  }

  outlivesWriteFailure(error: NodeJS.ErrnoException): boolean {
    const closed = error.code === "EPIPE" || error.code === "ECONNRESET";
    if (!closed || this.#socket.readableEnded) return false;
    this.#writeFailure ??= error;
    return true;
  }

  /** Passes the connection to `handler`, which first gets `read`: bytes that were already read. */
  passTo(handler: TransportHandler, read: Buffer): void {
    this.#handler = handler;
    if (read.length > 0) handler.onData(read, read.length);
  }

  /** Replaces the socket's addresses by those in a PROXY header, for handlers created from now on. */
  setAddresses({ remoteAddress, remotePort, localAddress, localPort }: ProxiedAddresses): void {
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
    this.localAddress = localAddress;
    this.localPort = localPort;
  }

  deliver(bytes: Buffer, length: number): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    if (this.#paused || this.#held !== undefined) {
      this.#held ??= new ByteQueue();
      this.#held.append(bytes, 0, length);
      return;
    }
    this.bytesRead += length;
    try {
      handler.onData(bytes, length);
    } catch (error) {
      this.#fault(handler, error);
    }
  }

  /** Writes latin1 text: one byte for each character. False = wait for `onDrain` before writing much more. */
  writeText(text: string): boolean {
    this.bytesWritten += text.length;
    const direct = this.#directNow();
    if (direct === undefined) return this.#hasRoom(this.#socket.write(text, "latin1"));
    direct.writeText(text);
    return direct.pending === 0 || this.#directHasRoom(direct);
  }

  /**
   * Adds `buffer[from, to)`, which may change after the call, to what `flush` writes. If it is part of the buffer that a transport is
   * delivering from its own memory, that buffer is lent and not read into meanwhile; everything else is copied.
   */
  gather(buffer: Buffer, from: number, to: number): void {
    const bytes = buffer.subarray(from, to);
    this.#gathered ??= new Gathered();
    const release = lendDelivered(buffer);
    if (release !== undefined) {
      this.#gathered.add(bytes, release);
      return;
    }
    const copy = pooledCopy(bytes);
    if (copy === undefined) this.#gathered.add(Buffer.from(bytes));
    else this.#gathered.add(copy.bytes, copy.release);
  }

  /** The same for latin1 text. */
  gatherText(text: string): void {
    this.#gathered ??= new Gathered();
    this.#gathered.add(Buffer.from(text, "latin1"));
  }

  /** Bytes that `flush` writes. */
  get gathered(): number {
    return this.#gathered?.length ?? 0;
  }

  /** Writes what was gathered, in one call of the system. False = wait for `onDrain` before writing much more. */
  flush(): boolean {
    const gathered = this.#gathered;
    if (gathered === undefined) return true;
    this.#gathered = undefined;
    this.bytesWritten += gathered.length;
    const [first] = gathered.pieces;
    if (first !== undefined && gathered.pieces.length === 1) return this.#writeKept(first, gathered.release);
    return this.#writePieces(gathered);
  }

  /** Writes `buffer[from, to)`, which may change after the call. False = wait for `onDrain` before writing much more. */
  write(buffer: Buffer, from: number, to: number): boolean {
    this.gather(buffer, from, to);
    return this.flush();
  }

  #writePieces({ pieces, length, release }: Gathered): boolean {
    const direct = this.#directNow();
    if (direct !== undefined) {
      direct.writePieces(pieces, length, release);
      return direct.pending === 0 || this.#directHasRoom(direct);
    }
    const socket = this.#socket;
    const last = pieces.length - 1;
    socket.cork();
    // Writes end in order.
    for (const [index, piece] of pieces.entries()) socket.write(piece, index === last ? release : undefined);
    socket.uncork();
    return this.#hasRoom(!socket.writableNeedDrain);
  }

  #writeKept(bytes: Buffer, release?: () => void): boolean {
    const direct = this.#directNow();
    if (direct === undefined) return this.#hasRoom(this.#socket.write(bytes, release));
    direct.writeBytes(bytes, release);
    return direct.pending === 0 || this.#directHasRoom(direct);
  }

  /**
   * Writes `bytes`, which stay as they are until `release` is called: at once where the system takes them. False = wait for `onDrain`
   * before writing much more.
   */
  send(bytes: Buffer, release: () => void): boolean {
    this.bytesWritten += bytes.length;
    const direct = this.#directNow();
    if (direct !== undefined) {
      direct.writeBytes(bytes, release);
      return direct.pending === 0 || this.#directHasRoom(direct);
    }
    const socket = this.#socket;
    // Without a callback: Node would call it in a later turn, for each write.
    const more = socket.write(bytes);
    if (socket.writableLength === 0) {
      release();
      return true;
    }
    // Writes end in order, so this one ends when the bytes before it have gone.
    socket.write(NOTHING, release);
    return this.#hasRoom(more);
  }

  /** The direct writer, if it may be used now: nothing may overtake earlier writes. */
  #directNow(): DirectWriter | undefined {
    const direct = this.#direct;
    if (direct === undefined || this.#socket.writableLength > 0) return undefined;
    if (direct.pending === 0) return direct;
    this.#holdStream();
    return undefined;
  }

  /** Called before the stream gets something to write: the stream keeps that while the handle is busy. */
  #holdStream(): void {
    const writer = this.#writer;
    if (this.#streamHeld || writer === undefined || !writer.exclusive || writer.pending === 0) return;
    this.#streamHeld = true;
    this.#socket.cork();
  }

  #letStreamGo(): void {
    if (!this.#streamHeld) return;
    this.#streamHeld = false;
    if (this.#endDue) this.#socket.end();
    else this.#socket.uncork();
  }

  /** Whether more may be written before a direct write has ended. */
  #directHasRoom({ pending }: DirectWriter): boolean {
    if (pending < (frugal ? FRUGAL_BYTES : this.#socket.writableHighWaterMark)) return true;
    this.#drainDue = true;
    return false;
  }

  onWritten(): void {
    this.#letStreamGo();
    if (!this.#drainDue) return;
    this.#drainDue = false;
    if (this.#socket.writableLength === 0) this.#call((handler) => handler.onDrain());
    // What the stream got meanwhile goes first; the stream emits `drain` itself if it has asked for a pause.
    else if (!this.#socket.writableNeedDrain) this.awaitDrain();
  }

  onWriteFailure(error: NodeJS.ErrnoException): void {
    // The stream fails as well if it has anything to write; direct writes stop.
    this.#direct = undefined;
    if (this.#socket.destroyed) return;
    if (this.#outlivesFailure && this.outlivesWriteFailure(error)) this.#letStreamGo();
    else this.#socket.destroy(error);
  }

  /** Calls `then` once the system has taken all that is written; not if the connection ends first. */
  whenTaken(then: () => void): void {
    const socket = this.#socket;
    this.#holdStream();
    socket.write(NOTHING, () => {
      if (!socket.destroyed) then();
    });
  }

  /** Bytes that were written but that the system has not taken yet. */
  get backlog(): number {
    return this.#socket.writableLength + (this.#writer?.pending ?? 0);
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#socket.pause();
    if (this.#socket.destroyed) return;
    this.#waits = true;
    beginsToWait();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#waitNoMore();
    // Not inside this call: the caller may be in the middle of something.
    if (this.#held !== undefined || this.#endHeld) process.nextTick(() => this.#goOn());
    else this.#socket.resume();
  }

  /** Whether the peer has reset the connection. While reading is paused no event reports it. False where it is not known. */
  get wasReset(): boolean {
    return sockets.wasReset(this.#carrier);
  }

  /** Sends FIN after what is written. */
  end(): void {
    this.#direct = undefined;
    this.#holdStream();
    if (this.#streamHeld) this.#endDue = true;
    else this.#socket.end();
  }

  destroy(): void {
    this.#direct = undefined;
    this.#socket.destroy();
  }

  /** Closes with RST, so a truncated body that only the close delimits is not mistaken for a complete one. */
  reset(): void {
    this.#direct = undefined;
    this.#carrier.resetAndDestroy();
  }

  /** Gives the socket away after putting back `read`, bytes that were taken from it. No event follows here. */
  release(read: Buffer): ByteStream {
    this.#handler = undefined;
    this.#direct = undefined;
    this.#holdStream();
    this.#waitNoMore();
    const held = this.#held?.view();
    this.#held = undefined;
    this.#reader.close();
    this.#socket.removeAllListeners("data");
    // The next transport of the stream adds its own.
    this.#socket.off("end", Transport.#onEnd).off("drain", Transport.#onDrain).off("close", Transport.#onClose);
    this.#socket.pause();
    this.#socket.unshift(held === undefined ? read : Buffer.concat([read, held]));
    return this.#socket;
  }

  /** `more`: the stream would take more, up to its high-water mark of 64 KiB. */
  #hasRoom(more: boolean): boolean {
    const socket = this.#socket;
    if (!more) return socket.writableLength === 0;
    if (!frugal || socket.writableLength < FRUGAL_BYTES) return true;
    // Below the mark the stream emits no `drain`.
    this.awaitDrain();
    return false;
  }

  /** `onDrain` follows when the system has taken all that is written, whatever the writes returned. */
  awaitDrain(): void {
    if (this.#drainAwaited) return;
    this.#drainAwaited = true;
    this.whenTaken(() => {
      this.#drainAwaited = false;
      this.#call((handler) => handler.onDrain());
    });
  }

  #waitNoMore(): void {
    if (!this.#waits) return;
    this.#waits = false;
    waitsNoMore();
  }

  /** Ends this connection instead of the whole thread when its handler has thrown. */
  #fault(handler: TransportHandler, error: unknown): void {
    handler.onFault(error);
    this.#socket.destroy();
  }

  /** Delivers what was held, then the end if it has come, unless reading is paused again. */
  #goOn(): void {
    const held = this.#held;
    if (this.#paused || this.#socket.destroyed) return;
    this.#held = undefined;
    if (held !== undefined) this.deliver(held.bytes.subarray(held.start, held.end), held.length);
    if (this.#paused) return;
    this.#socket.resume();
    if (!this.#endHeld) return;
    this.#endHeld = false;
    this.#ended();
  }

  #ended(): void {
    if (this.#held !== undefined) {
      this.#endHeld = true;
      return;
    }
    const failure = this.#writeFailure;
    // After a reset that failed a write, the read ends as if by FIN. On Linux EPIPE means that a FIN came before the reset.
    if (failure === undefined || (failure.code === "EPIPE" && process.platform === "linux"))
      this.#call((current) => current.onEnd());
    if (failure !== undefined) this.#socket.destroy(failure);
  }

  #call(event: (handler: TransportHandler) => void): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    try {
      event(handler);
    } catch (error) {
      this.#fault(handler, error);
    }
  }
}
