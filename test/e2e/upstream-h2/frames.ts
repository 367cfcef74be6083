import { uint32 } from "../../helpers/h2-client.ts";
import { type RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD = 9;
export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
export const END_STREAM = 1;
export const END_HEADERS = 4;
const ACK = 1;
const MAX_CONCURRENT_STREAMS = 3;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** The server's end of a connection, frame by frame (RFC 9113 4.1), for what no well-behaved server does. */
export class RawFrames {
  readonly peer: RawPeer;

  constructor(peer: RawPeer) {
    this.peer = peer;
  }

  /** Reads the client's preface and announces the number of concurrent streams; undefined: no limit. */
  async greet(maxStreams?: number): Promise<void> {
    await this.begin();
    const settings = maxStreams === undefined ? [] : [Buffer.of(0, MAX_CONCURRENT_STREAMS), uint32(maxStreams)];
    this.send(SETTINGS, 0, 0, Buffer.concat(settings));
  }

  /** Reads the client's preface; SETTINGS must be sent first. */
  async begin(): Promise<void> {
    await this.peer.take(PREFACE);
  }

  send(type: number, flags: number, stream: number, payload: Buffer): void {
    const head = Buffer.alloc(FRAME_HEAD);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    this.peer.send(Buffer.concat([head, payload]));
  }

  /** The next frame of one of these types; others are acknowledged if necessary, and dropped. */
  async next(...types: readonly number[]): Promise<Frame> {
    for (;;) {
      const frame = await this.#frame();
      if (frame.type === SETTINGS && frame.flags !== ACK) this.send(SETTINGS, ACK, 0, Buffer.alloc(0));
      if (frame.type === PING && frame.flags !== ACK) this.send(PING, ACK, 0, frame.payload);
      if (types.includes(frame.type)) return frame;
    }
  }

  /** Responds 200 with further fields; `flags` in addition to END_HEADERS. */
  respond(stream: number, fields: Readonly<Record<string, string>> = {}, flags = 0): void {
    const lines = Object.entries(fields).map(([name, value]) => literal(name, value));
    this.send(HEADERS, END_HEADERS | flags, stream, Buffer.concat([Buffer.of(STATUS_200), ...lines]));
  }

  /** RST_STREAM. */
  reset(stream: number, code: number): void {
    this.send(RST_STREAM, 0, stream, uint32(code));
  }

  goaway(lastStream: number, code: number): void {
    this.send(GOAWAY, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]));
  }

  async #frame(): Promise<Frame> {
    const { peer } = this;
    await peer.until(() => peer.received.length >= FRAME_HEAD, "a frame");
    const head = Buffer.from(peer.received.slice(0, FRAME_HEAD), "latin1");
    const end = FRAME_HEAD + head.readUIntBE(0, 3);
    await peer.until(() => peer.received.length >= end, "the rest of a frame");
    const payload = Buffer.from(peer.received.slice(FRAME_HEAD, end), "latin1");
    peer.received = peer.received.slice(end);
    return { type: head[3] ?? 0, flags: head[4] ?? 0, stream: head.readUInt32BE(5), payload };
  }
}

/** A server whose connections `serve` handles after the prefaces. */
export function rawServer(
  serve: (frames: RawFrames, connection: number) => Promise<void>,
  maxStreams?: number,
): Promise<RawUpstream> {
  let connections = 0;
  return RawUpstream.listen(async (peer) => {
    const number = connections++;
    const frames = new RawFrames(peer);
    await frames.greet(maxStreams);
    await serve(frames, number);
  });
}

/** Index of `:status: 200` in the static table of HPACK (RFC 7541 A), as an indexed field. */
const STATUS_200 = 0x88;

/** A field that enters no table, without Huffman coding (RFC 7541 6.2.2); short ones only. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
}
