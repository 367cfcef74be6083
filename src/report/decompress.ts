/** Content-encodings of bodies, decoded by Node.js. */
import { brotliDecompressSync, constants, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { bytesOf } from "./bodies.ts";

const DECODERS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  // The flush modes give what a body that was cut short holds, instead of an error.
  gzip: (bytes) => gunzipSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.Z_SYNC_FLUSH }),
  deflate: (bytes) => inflateSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.Z_SYNC_FLUSH }),
  br: (bytes) => brotliDecompressSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: (bytes) => zstdDecompressSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.ZSTD_e_flush }),
};

/** Against compression bombs: a body that decodes to more is shown as not decoded. */
const LIMIT = 4 * 1024 * 1024;

/** A `Decompress`. */
export function decompress(base64: string, encoding: string): Uint8Array | undefined {
  const decode = DECODERS[encoding];
  if (decode === undefined || base64 === "") return undefined;
  try {
    return decode(bytesOf(base64));
  } catch {
    return undefined;
  }
}
