import {
  ACK,
  CONTINUATION,
  DATA,
  DEFAULT_FRAME_SIZE,
  END_HEADERS,
  END_STREAM,
  errorName,
  FRAME_HEADER,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  PRIORITY_UPDATE,
  RST_STREAM,
  readUint31,
  SETTINGS,
  WINDOW_UPDATE,
  writeFrameHeader,
} from "../../src/http/h2/frames.ts";
import { FieldSection, HpackDecoder } from "../../src/http/h2/hpack/decoder.ts";
import { RawPeer } from "./raw-peer.ts";

/** How long a test waits for something that must happen. */
const PATIENCE_MS = 60_000;
const NOTHING = Buffer.alloc(0);

/** What has arrived on one stream. */
export interface StreamRecord {
  /** Heads and trailers, each flat. */
  readonly sections: string[][];
  /** Data, latin1. */
  body: string;
  /** END_STREAM has arrived. */
  ended: boolean;
  /** DATA frames, empty ones too. */
  dataFrames: number;
  /** Name of the code of RST_STREAM. */
  reset: string | undefined;
}

/**
 * The client's end of a connection of HTTP/2, frame by frame, for what no well-behaved client does. Acknowledges SETTINGS and
 * PINGs, and gives credit only by `credit`.
 */
export class H2Client {
  readonly peer: RawPeer;
  readonly streams = new Map<number, StreamRecord>();
  /** `last stream, name of the code` of each GOAWAY. */
  readonly goAways: string[] = [];
  /** Values of the gateway's SETTINGS by their ids. */
  readonly settings = new Map<number, number>();
  /** PINGs are not acknowledged. */
  silent = false;
  pings = 0;
  pongs = 0;
  settingsAcks = 0;
  readonly #decoder = new HpackDecoder({ tableSize: 4096, maxListSize: 1 << 20, maxFields: 1000 });
  #block: Buffer[] = [];

  /** Ends when the gateway does, as clients do. */
  constructor(peer: RawPeer) {
    this.peer = peer;
    peer.socket.on("end", () => peer.end());
  }

  /** Connects to a port of 127.0.0.1 and sends the preface and SETTINGS; `settings`: ids and values in turn. */
  static async connect(port: number, settings: readonly number[] = []): Promise<H2Client> {
    const client = new H2Client(await RawPeer.connect(port));
    client.greet(settings);
    return client;
  }

  greet(settings: readonly number[] = []): void {
    this.peer.send(PREFACE);
    const payload = Buffer.alloc(settings.length * 3);
    for (let i = 0; i < settings.length; i += 2) {
      payload.writeUInt16BE(settings[i] ?? 0, i * 3);
      payload.writeUInt32BE(settings[i + 1] ?? 0, i * 3 + 2);
    }
    this.send(SETTINGS, 0, 0, payload);
  }

  // ── sending ──

  send(type: number, flags: number, stream: number, payload: Buffer = NOTHING): void {
    this.peer.send(frame(type, flags, stream, payload));
  }

  /** Opens a stream, or sends trailers. `end`: with END_STREAM. */
  headers(stream: number, fields: readonly string[], end = true): void {
    const block = literals(fields);
    for (let from = 0; from < block.length || from === 0; from += DEFAULT_FRAME_SIZE) {
      const piece = block.subarray(from, from + DEFAULT_FRAME_SIZE);
      const last = from + piece.length === block.length ? END_HEADERS : 0;
      this.send(from === 0 ? HEADERS : CONTINUATION, last | (end && from === 0 ? END_STREAM : 0), stream, piece);
    }
  }

  /** A GET, or with a method of your choice a request whose body follows. */
  request(stream: number, method = "GET", fields: readonly string[] = [], path = "/"): void {
    const pseudo = [":method", method, ":scheme", "http", ":path", path, ":authority", "a.example"];
    this.headers(stream, [...pseudo, ...fields], method === "GET" || method === "HEAD");
  }

  data(stream: number, text: string, end = true): void {
    this.send(DATA, end ? END_STREAM : 0, stream, Buffer.from(text, "latin1"));
  }

  reset(stream: number, code: number): void {
    this.send(RST_STREAM, 0, stream, uint32(code));
  }

  /** Gives credit to a stream, or to the connection (0). */
  credit(stream: number, bytes: number): void {
    this.send(WINDOW_UPDATE, 0, stream, uint32(bytes));
  }

  /** Sends PRIORITY_UPDATE for a stream, such as `u=0` (RFC 9218 7.1). */
  prioritize(stream: number, value: string): void {
    this.send(PRIORITY_UPDATE, 0, 0, Buffer.concat([uint32(stream), Buffer.from(value, "latin1")]));
  }

  // ── receiving ──

  stream(id: number): StreamRecord {
    let record = this.streams.get(id);
    if (record === undefined) {
      record = { sections: [], body: "", ended: false, dataFrames: 0, reset: undefined };
      this.streams.set(id, record);
    }
    return record;
  }

  /** Reads frames until `condition` holds. Rejects after a bounded time, or when the connection ends before. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const { ended } = this.peer;
      this.#read();
      if (condition()) return;
      if (ended !== undefined || Date.now() > deadline)
        throw new Error(`waited in vain for ${what}; ${ended ?? "open"}`);
      await new Promise(setImmediate);
    }
  }

  /** The response of a stream, once it is complete or reset. */
  async response(id: number): Promise<StreamRecord> {
    const record = this.stream(id);
    await this.until(() => record.ended || record.reset !== undefined, `the response of stream ${id}`);
    return record;
  }

  /** The value of `:status` of the last section that has one. */
  static status(record: StreamRecord): number {
    const head = record.sections.findLast((section) => section[0] === ":status");
    return Number(head?.[1]);
  }

  /** Everything that is sent so far has been handled: a PING came back. */
  async settled(): Promise<void> {
    const before = this.pongs;
    this.send(PING, 0, 0, Buffer.alloc(8));
    await this.until(() => this.pongs > before, "the answer to a PING");
  }

  /** Like `until`, checked only when something arrives, which causes no load. False: the connection ended. */
  async received(condition: () => boolean): Promise<boolean> {
    for (;;) {
      const { ended } = this.peer;
      this.#read();
      if (condition()) return true;
      if (ended !== undefined) return false;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          for (const event of ["data", "end", "close"]) this.peer.socket.off(event, wake);
          resolve();
        };
        for (const event of ["data", "end", "close"]) this.peer.socket.on(event, wake);
      });
    }
  }

  /** Resolves when the gateway has closed the connection. */
  closed(): Promise<void> {
    return this.until(() => this.peer.ended !== undefined, "the end of the connection");
  }

  #read(): void {
    const { peer } = this;
    while (peer.received.length >= FRAME_HEADER) {
      const head = Buffer.from(peer.received.slice(0, FRAME_HEADER), "latin1");
      const end = FRAME_HEADER + head.readUIntBE(0, 3);
      if (peer.received.length < end) return;
      const payload = Buffer.from(peer.received.slice(FRAME_HEADER, end), "latin1");
      peer.received = peer.received.slice(end);
      this.#take(head[3] ?? 0, head[4] ?? 0, readUint31(head, 5), payload);
    }
  }

  #take(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case HEADERS:
      case CONTINUATION:
        this.#block.push(payload);
        if ((flags & END_HEADERS) !== 0) this.#takeBlock(id);
        if ((flags & END_STREAM) !== 0 && type === HEADERS) this.stream(id).ended = true;
        break;
      case DATA:
        this.stream(id).dataFrames++;
        this.stream(id).body += payload.toString("latin1");
        if ((flags & END_STREAM) !== 0) this.stream(id).ended = true;
        break;
      case RST_STREAM:
        this.stream(id).reset = errorName(payload.readUInt32BE(0));
        break;
      case SETTINGS:
        if ((flags & ACK) !== 0) this.settingsAcks++;
        else {
          for (let at = 0; at < payload.length; at += 6)
            this.settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
          this.send(SETTINGS, ACK, 0);
        }
        break;
      case PING:
        if ((flags & ACK) !== 0) this.pongs++;
        else {
          this.pings++;
          if (!this.silent) this.send(PING, ACK, 0, payload);
        }
        break;
      case GOAWAY:
        this.goAways.push(`${readUint31(payload, 0)}, ${errorName(payload.readUInt32BE(4))}`);
        break;
      default:
    }
  }

  #takeBlock(id: number): void {
    const block = Buffer.concat(this.#block);
    this.#block = [];
    const section = new FieldSection();
    const error = this.#decoder.decode(block, 0, block.length, section);
    if (error !== undefined) throw new Error(error);
    this.stream(id).sections.push(section.fields);
  }
}

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEADER);
  writeFrameHeader(head, 0, payload.length, type, flags, stream);
  return Buffer.concat([head, payload]);
}

/** Fields as literals that enter no table, without Huffman coding (RFC 7541 6.2.2). */
export function literals(fields: readonly string[]): Buffer {
  const pieces: Buffer[] = [];
  for (let i = 0; i < fields.length; i += 2)
    pieces.push(Buffer.of(0), text(fields[i] ?? ""), text(fields[i + 1] ?? ""));
  return Buffer.concat(pieces);
}

/** A string literal (RFC 7541 5.2), its length as an integer with a prefix of 7 bits (5.1). */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  const length = [Math.min(bytes.length, 127)];
  for (let rest = bytes.length - 127; rest >= 0; rest >>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** 32 bits in network byte order. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
