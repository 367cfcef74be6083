/**
 * Compresses bodies with node:zlib: a short body that has arrived as a whole at once, any other as a stage that it streams through.
 */
import type { BrotliCompress, Gzip, ZstdCompress } from "node:zlib";
import { GatewayError } from "../../base/errors.ts";
import { nodeZlib } from "../../base/lazy-node.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { bodyEncoder } from "../../net/node-internals-zlib.ts";
import type { BodySink, BodyStage, ContentCoding } from "../contract/types.ts";

const MiB = 1024 * 1024;
/**
 * Memory for encoders of one worker; responses that would exceed it are sent as they are. An encoder lives as long as its
 * response, so clients that read slowly could otherwise take all memory.
 */
const MAX_ENCODER_BYTES = 128 * MiB;
/** Bytes that wait while the encoder works; then the source is paused. */
const MAX_WAITING = 64 * 1024;
/** Windows of 512 KiB: a larger one gains little for web content, and every open response has one. */
const WINDOW_BITS = 19;

let encoderBytes = 0;

/** Memory of an encoder in bytes, measured with 500 KiB of text; schema.ts has the limits of levels. */
function bytesOf(coding: ContentCoding, level: number): number {
  if (coding === "gzip") return 0.5 * MiB;
  if (coding === "br") return (level > 4 ? 5 : 2.5) * MiB;
  return (level > 3 ? 3.5 : 1.75) * MiB;
}

/** Longest body that is compressed as a whole: at the default levels, this thread is busy for 0.1 to 0.3 ms with it. */
export const MAX_WHOLE = 32 * 1024;

interface BodyEncoder {
  readonly level: number;
  readonly encode: ReturnType<typeof bodyEncoder>;
}

/** Encoders of the last level that was used, so that their memory is bounded. */
const bodyEncoders: { [C in ContentCoding]?: BodyEncoder } = {};

/** The whole body compressed, on this thread: a stage would cost 200 µs of CPU more, whatever the length of the body. */
export function encodeWhole(coding: ContentCoding, level: number, body: Uint8Array): Buffer {
  if (bodyEncoders[coding]?.level !== level) bodyEncoders[coding] = { level, encode: makeBodyEncoder(coding, level) };
  return bodyEncoders[coding]?.encode?.(body) ?? encodeOnce(coding, level, body);
}

/** Encoders of Brotli serve for one body. */
function makeBodyEncoder(coding: ContentCoding, level: number): BodyEncoder["encode"] {
  const { constants } = nodeZlib();
  if (coding === "br") return undefined;
  // A frame of zstd that has ended is followed by the next one.
  const end =
    coding === "gzip" ? { flush: constants.Z_FINISH, reset: true } : { flush: constants.ZSTD_e_end, reset: false };
  return bodyEncoder(createEncoder(coding, level), end, MAX_WHOLE);
}

function encodeOnce(coding: ContentCoding, level: number, body: Uint8Array): Buffer {
  const { constants, gzipSync, brotliCompressSync, zstdCompressSync } = nodeZlib();
  if (coding === "gzip") return gzipSync(body, { level });
  if (coding === "br")
    return brotliCompressSync(body, {
      params: { ...brotliParams(level), [constants.BROTLI_PARAM_SIZE_HINT]: body.length },
    });
  return zstdCompressSync(body, { params: zstdParams(level) });
}

/** Makes the stage that compresses a body; undefined when the encoders of this worker have used up their memory. */
export function encoderStage(
  coding: ContentCoding,
  level: number,
): { make(sink: BodySink): BodyStage; close(): void } | undefined {
  const bytes = bytesOf(coding, level);
  if (encoderBytes + bytes > MAX_ENCODER_BYTES) return undefined;
  encoderBytes += bytes;
  const encoder = createEncoder(coding, level);
  let closed = false;
  return {
    make: (sink) => new EncoderStage(encoder, sink),
    close() {
      if (closed) return;
      closed = true;
      encoderBytes -= bytes;
      encoder.destroy();
    },
  };
}

/** Every write is flushed, so nothing that a stage has taken waits inside. */
function createEncoder(coding: ContentCoding, level: number): Encoder {
  const { constants, createGzip, createBrotliCompress, createZstdCompress } = nodeZlib();
  if (coding === "gzip") return createGzip({ level, flush: constants.Z_SYNC_FLUSH });
  if (coding === "br")
    return createBrotliCompress({ params: brotliParams(level), flush: constants.BROTLI_OPERATION_FLUSH });
  return createZstdCompress({ params: zstdParams(level), flush: constants.ZSTD_e_flush });
}

type Encoder = Gzip | BrotliCompress | ZstdCompress;

function brotliParams(level: number): Record<number, number> {
  const { constants } = nodeZlib();
  return { [constants.BROTLI_PARAM_QUALITY]: level, [constants.BROTLI_PARAM_LGWIN]: WINDOW_BITS };
}

function zstdParams(level: number): Record<number, number> {
  const { constants } = nodeZlib();
  return { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_windowLog]: WINDOW_BITS };
}

/**
 * A body on its way through an encoder, which works in the thread pool of libuv. While it works, what arrives is collected and then
 * written in one piece: pieces of a fast source become large, compress well and seldom cross threads, while each piece of a slow
 * source goes out at once.
 */
class EncoderStage implements BodyStage {
  readonly #encoder: Encoder;
  readonly #sink: BodySink;
  #waiting: Uint8Array[] = [];
  #size = 0;
  /** The encoder works, or will from the end of this turn on. */
  #busy = false;
  #congested = false;
  /** The trailers of the body, once it is complete. */
  #trailers: HeaderList | undefined;

  constructor(encoder: Encoder, sink: BodySink) {
    this.#encoder = encoder;
    this.#sink = sink;
    encoder.on("data", (bytes: Buffer) => {
      if (!sink.write(bytes)) encoder.pause();
    });
    encoder.on("end", () => sink.end(this.#trailers ?? []));
    encoder.on("error", (error) => sink.breakOff(new GatewayError("TG_INTERNAL", undefined, error)));
  }

  write(bytes: Uint8Array): boolean {
    this.#waiting.push(bytes);
    this.#size += bytes.length;
    this.#schedule();
    if (this.#size <= MAX_WAITING) return true;
    this.#congested = true;
    return false;
  }

  end(trailers: HeaderList): void {
    this.#trailers = trailers;
    this.#schedule();
  }

  onDrain(): void {
    this.#encoder.resume();
  }

  /** After this turn: one read of a socket may bring several pieces and the end. */
  #schedule(): void {
    if (this.#busy) return;
    this.#busy = true;
    queueMicrotask(() => this.#encode());
  }

  #encode(): void {
    const bytes = this.#waiting.length === 1 ? this.#waiting[0] : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#size = 0;
    if (this.#encoder.destroyed) return;
    if (this.#trailers !== undefined) this.#encoder.end(bytes);
    else this.#encoder.write(bytes, (error) => this.#onEncoded(error));
  }

  #onEncoded(error: Error | null | undefined): void {
    // The encoder has been closed, or its `error` event follows.
    if (error !== null && error !== undefined) return;
    this.#busy = false;
    if (this.#size > 0 || this.#trailers !== undefined) this.#schedule();
    if (!this.#congested) return;
    this.#congested = false;
    this.#sink.resume();
  }
}
