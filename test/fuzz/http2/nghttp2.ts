/** Node's nghttp2 as an encoder and as a decoder of header blocks: a session of `node:http2` on a connection in memory. */
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders, performServerHandshake } from "node:http2";
import { type Duplex, duplexPair } from "node:stream";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const FRAME_HEAD = 9;
const MAX_FRAME = 16_384;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const CONTINUATION = 9;
const ACK = 1;
const END_STREAM = 1;
const END_HEADERS = 4;
const SETTINGS_HEADER_TABLE_SIZE = 1;
const COMPRESSION_ERROR = 9;

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function tableSizeSettings(size: number): Buffer {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(SETTINGS_HEADER_TABLE_SIZE);
  payload.writeUInt32BE(size, 2);
  return frame(SETTINGS, 0, 0, payload);
}

/** The other end of the session: frames, and a wait for one of them. */
class RawEnd {
  readonly #socket: Duplex;
  #received = Buffer.alloc(0);
  #taken: Frame[] = [];
  #wake: () => void = () => {};
  #over = false;

  constructor(socket: Duplex, preface: number) {
    this.#socket = socket;
    let skip = preface;
    socket.on("data", (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      if (skip > 0) {
        if (this.#received.length < skip) return;
        this.#received = this.#received.subarray(skip);
        skip = 0;
      }
      this.#parse();
      this.#wake();
    });
    const end = () => {
      this.#over = true;
      this.#wake();
    };
    socket.on("end", end).on("close", end).on("error", end);
  }

  #parse(): void {
    while (this.#received.length >= FRAME_HEAD) {
      const end = FRAME_HEAD + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) return;
      const [type = 0, flags = 0] = this.#received.subarray(3);
      this.#taken.push({
        type,
        flags,
        stream: this.#received.readUInt32BE(5),
        payload: Buffer.from(this.#received.subarray(FRAME_HEAD, end)),
      });
      this.#received = this.#received.subarray(end);
    }
  }

  send(...frames: Buffer[]): void {
    if (!this.#over) this.#socket.write(Buffer.concat(frames));
  }

  /** The frames up to the first that is `wanted`, or all when the connection ends. */
  async until(wanted: (frame: Frame) => boolean): Promise<Frame[]> {
    for (;;) {
      const found = this.#taken.findIndex(wanted);
      if (found >= 0) return this.#taken.splice(0, found + 1);
      if (this.#over) return this.#taken.splice(0);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** Encodes requests, as a client. */
export class Nghttp2Encoder implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #raw: RawEnd;

  constructor() {
    const [near, far] = duplexPair();
    this.#raw = new RawEnd(far, PREFACE.length);
    this.#session = connect("http://a.example", { createConnection: () => near });
    this.#session.on("error", () => {});
    this.#raw.send(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
  }

  /** Announces the table size of the decoder, and waits until the encoder has adopted it. */
  async setTableSize(size: number): Promise<void> {
    this.#raw.send(tableSizeSettings(size), frame(PING, 0, 0, Buffer.alloc(8)));
    await this.#raw.until(({ type, flags }) => type === PING && flags === ACK);
  }

  /** The block of a request with these fields; pseudo-fields that are missing are added at the front. */
  async encode(fields: OutgoingHttpHeaders): Promise<Buffer> {
    const request = this.#session.request(fields, { endStream: true });
    request.on("error", () => {}).resume();
    const frames = await this.#raw.until(({ flags, stream }) => stream > 0 && (flags & END_HEADERS) > 0);
    const [first] = frames.filter(({ type }) => type === HEADERS);
    if (first === undefined) throw new Error("the session has closed");
    this.#raw.send(frame(HEADERS, END_HEADERS | END_STREAM, first.stream, Buffer.of(0x88)));
    return Buffer.concat(frames.filter(({ stream }) => stream === first.stream).map(({ payload }) => payload));
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
    this.#raw.close();
  }
}

/** What nghttp2 makes of a block: its fields, or who has to end for it. */
export type Decoded =
  | { readonly fields: readonly string[] }
  | "stream error"
  | "compression error"
  | "connection error";

/** Decodes requests, as a server. */
export class Nghttp2Decoder implements Disposable {
  readonly #raw: RawEnd;
  readonly #session: ReturnType<typeof performServerHandshake>;
  #fields: readonly string[] | undefined;
  #stream = -1;

  /** `tableSize` is what it announces. Limits on fields are out of the way. */
  constructor(tableSize = 4096) {
    const [near, far] = duplexPair();
    this.#raw = new RawEnd(far, 0);
    this.#session = performServerHandshake(near, {
      settings: { headerTableSize: tableSize, maxHeaderListSize: 2 ** 30 },
      maxHeaderListPairs: 10_000,
      maxSendHeaderBlockLength: 2 ** 30,
    });
    this.#session.on("error", () => {});
    this.#session.on("stream", (stream, _headers, _flags, raw: readonly string[]) => {
      this.#fields = raw;
      stream.on("error", () => {});
      stream.respond({ ":status": 200 }, { endStream: true });
    });
    this.#raw.send(PREFACE, frame(SETTINGS, 0, 0, Buffer.alloc(0)));
  }

  /** Acknowledges `tableSize`: the next block may use it. */
  async settle(): Promise<void> {
    await this.#raw.until(({ type, flags }) => type === SETTINGS && flags !== ACK);
    this.#raw.send(frame(SETTINGS, ACK, 0, Buffer.alloc(0)));
  }

  async decode(block: Buffer): Promise<Decoded> {
    this.#fields = undefined;
    this.#stream += 2;
    const stream = this.#stream;
    for (let at = 0; at === 0 || at < block.length; at += MAX_FRAME) {
      const flags = (at === 0 ? END_STREAM : 0) | (at + MAX_FRAME >= block.length ? END_HEADERS : 0);
      const part = block.subarray(at, at + MAX_FRAME);
      this.#raw.send(frame(at === 0 ? HEADERS : CONTINUATION, flags, stream, part));
    }
    this.#raw.send(frame(PING, 0, 0, Buffer.alloc(8)));
    const frames = await this.#raw.until(({ type, flags }) => type === GOAWAY || (type === PING && flags === ACK));
    const goaway = frames.find(({ type }) => type === GOAWAY);
    if (goaway !== undefined) {
      return goaway.payload.readUInt32BE(4) === COMPRESSION_ERROR ? "compression error" : "connection error";
    }
    if (frames.some(({ type, stream: of }) => type === RST_STREAM && of === stream)) return "stream error";
    return this.#fields === undefined ? "connection error" : { fields: this.#fields };
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
    this.#raw.close();
  }
}
