/** The numbers of HTTP/2 on the wire (RFC 9113, RFC 8441, RFC 9218). Single constants, not an object: they are compared for each frame. */

/** What a client sends first (RFC 9113 3.4). */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Length (24 bits), type (8), flags (8), reserved bit and stream id (31): RFC 9113 4.1. */
export const FRAME_HEADER = 9;
/** The payload size that every peer accepts, and that we announce by default (RFC 9113 4.2). */
export const DEFAULT_FRAME_SIZE = 16_384;
export const MAX_FRAME_SIZE = 2 ** 24 - 1;
/** Flow-control windows of streams and connections before anything else is announced (RFC 9113 6.9.2). */
export const DEFAULT_WINDOW = 65_535;
export const MAX_WINDOW = 2 ** 31 - 1;
export const MAX_STREAM_ID = 2 ** 31 - 1;

// Frame types (RFC 9113 6; RFC 9218 7.1).
export const DATA = 0x0;
export const HEADERS = 0x1;
export const PRIORITY = 0x2;
export const RST_STREAM = 0x3;
export const SETTINGS = 0x4;
export const PUSH_PROMISE = 0x5;
export const PING = 0x6;
export const GOAWAY = 0x7;
export const WINDOW_UPDATE = 0x8;
export const CONTINUATION = 0x9;
export const PRIORITY_UPDATE = 0x10;

// Flags (RFC 9113 6).
export const ACK = 0x1;
export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const PRIORITY_FLAG = 0x20;

// Settings (RFC 9113 6.5.2; RFC 8441 3; RFC 9218 2.1).
export const HEADER_TABLE_SIZE = 0x1;
export const ENABLE_PUSH = 0x2;
export const MAX_CONCURRENT_STREAMS = 0x3;
export const INITIAL_WINDOW_SIZE = 0x4;
export const SETTING_MAX_FRAME_SIZE = 0x5;
export const MAX_HEADER_LIST_SIZE = 0x6;
export const ENABLE_CONNECT_PROTOCOL = 0x8;
export const NO_RFC7540_PRIORITIES = 0x9;

// Error codes (RFC 9113 7).
export const NO_ERROR = 0x0;
export const PROTOCOL_ERROR = 0x1;
export const INTERNAL_ERROR = 0x2;
export const FLOW_CONTROL_ERROR = 0x3;
export const SETTINGS_TIMEOUT = 0x4;
export const STREAM_CLOSED = 0x5;
export const FRAME_SIZE_ERROR = 0x6;
export const REFUSED_STREAM = 0x7;
export const CANCEL = 0x8;
export const COMPRESSION_ERROR = 0x9;
export const CONNECT_ERROR = 0xa;
export const ENHANCE_YOUR_CALM = 0xb;
export const HTTP_1_1_REQUIRED = 0xd;

const ERROR_NAMES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];

/** The name of an error code; its number if RFC 9113 has no name for it. */
export function errorName(code: number): string {
  return ERROR_NAMES[code] ?? `error code ${code}`;
}

/** Writes a frame header at `at`; returns the index of the payload. */
export function writeFrameHeader(
  out: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  id: number,
): number {
  out[at] = length >>> 16;
  out[at + 1] = length >>> 8;
  out[at + 2] = length;
  out[at + 3] = type;
  out[at + 4] = flags;
  return writeUint32(out, at + 5, id);
}

/** Writes 32 bits at `at`; returns the index after them. */
export function writeUint32(out: Buffer, at: number, value: number): number {
  out[at] = value >>> 24;
  out[at + 1] = value >>> 16;
  out[at + 2] = value >>> 8;
  out[at + 3] = value;
  return at + 4;
}

/** Reads 31 bits, without the reserved one. */
export function readUint31(buffer: Buffer, at: number): number {
  return (
    (((buffer[at] as number) & 0x7f) << 24) |
    ((buffer[at + 1] as number) << 16) |
    ((buffer[at + 2] as number) << 8) |
    (buffer[at + 3] as number)
  );
}

/** Reads 32 bits without a sign. */
export function readUint32(buffer: Buffer, at: number): number {
  return readUint31(buffer, at) + ((buffer[at] as number) >>> 7) * 2 ** 31;
}
