/**
 * The client of a rehearsal, as curl would be one: TLS with its certificate if it has one, then HTTP/1.1 as bytes, so that the gateway's
 * parser sees what was written, or HTTP/2 by Node.js.
 */
import { connect as connectHttp2 } from "node:http2";
import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import { messageOf } from "../base/errors.ts";
import { nodeTls } from "../base/lazy-node.ts";
import { BadFacts, type RequestFacts } from "./facts.ts";

/** What the client gets. */
export interface ReceivedResponse {
  /** Names and values alternate; in HTTP/2 without `:status`. */
  readonly headers: readonly string[];
  /** As it is framed. */
  readonly body: Buffer;
}

const OFFERED = { "1.1": ["http/1.1"], "2": ["h2"] } as const;

/** Fields of one connection, which HTTP/2 has no use for (RFC 9113, section 8.2.2), and the one that becomes `:authority`. */
const HTTP1_ONLY = new Set(["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);

export class RehearsedClient {
  /** Resolves when the connection has closed. Rejects with BadFacts for what such a client cannot send. */
  readonly closed: Promise<void>;
  readonly #facts: RequestFacts;
  readonly #received: Buffer[] = [];
  /** Of HTTP/2, whose response has no bytes of a head. */
  #headers: readonly string[] | undefined;
  #leave: () => void;

  /** Begins the connection on `stream`. */
  constructor(stream: Duplex, facts: RequestFacts) {
    this.#facts = facts;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#leave = () => stream.end();
    stream.on("close", resolve).on("error", resolve);
    stream.on("end", () => stream.end());
    const attempt = (begin: () => void): void => {
      try {
        begin();
      } catch (error) {
        stream.destroy();
        reject(notSent(error));
      }
    };
    const { serverName, version } = facts;
    if (serverName === undefined) attempt(() => this.#speak(stream, version === "2"));
    else attempt(() => this.#shakeHands(stream, serverName, attempt));
  }

  /** Ends the connection; after the response of its request. */
  leave(): void {
    this.#leave();
  }

  get response(): ReceivedResponse {
    const bytes = Buffer.concat(this.#received);
    return this.#headers === undefined ? readResponse(bytes) : { headers: this.#headers, body: bytes };
  }

  #shakeHands(stream: Duplex, servername: string, attempt: (begin: () => void) => void): void {
    const { certificate, url, version } = this.#facts;
    const offered = version === undefined ? ["h2", "http/1.1"] : [...OFFERED[version]];
    const socket = nodeTls().connect({
      socket: stream,
      servername,
      // Whether clients trust the gateway is not asked.
      rejectUnauthorized: false,
      ...(url.protocol === "https:" && { ALPNProtocols: offered }),
      ...(certificate !== undefined && { secureContext: contextOf(certificate) }),
    });
    socket.on("error", () => stream.destroy());
    socket.once("secureConnect", () => {
      this.#leave = () => socket.end();
      attempt(() => this.#speak(socket, socket.alpnProtocol === "h2"));
    });
  }

  #speak(stream: Duplex, isHttp2: boolean): void {
    const { head, body } = this.#facts;
    if (isHttp2) {
      this.#speakHttp2(stream);
      return;
    }
    stream.on("data", (bytes: Buffer) => this.#received.push(bytes)).on("error", () => {});
    stream.write(Buffer.concat([Buffer.from(head, "latin1"), CHUNKED.test(head) ? oneChunk(body) : body]));
    // Requests end by themselves.
    if (head === "") stream.end();
  }

  #speakHttp2(stream: Duplex): void {
    const { url, body } = this.#facts;
    const session = connectHttp2(url.origin, { createConnection: () => stream }).on("error", () => {});
    this.#leave = () => session.close();
    const request = session.request(fieldsOfHttp2(this.#facts), { endStream: body.length === 0 });
    request.on("response", (_headers, _flags, fields) => {
      this.#headers = fields.slice(2);
    });
    request.on("data", (bytes: Buffer) => this.#received.push(bytes)).on("error", () => {});
    if (body.length > 0) request.end(body);
  }
}

function contextOf(certificate: string): SecureContext {
  try {
    return nodeTls().createSecureContext({ cert: certificate, key: certificate });
  } catch (error) {
    const hint = "write --cert FILE and --key FILE with PEM, without a password";
    throw new BadFacts(`the client's certificate cannot be used: ${messageOf(error)}`, hint);
  }
}

function notSent(error: unknown): BadFacts {
  if (error instanceof BadFacts) return error;
  return new BadFacts(`the client cannot send this: ${messageOf(error)}`, "write a request that curl can send");
}

const CHUNKED = /^transfer-encoding: *chunked *\r$/im;

function oneChunk(body: Buffer): Buffer {
  if (body.length === 0) return Buffer.from("0\r\n\r\n");
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);
}

/** The head as curl sends it over HTTP/2. */
function fieldsOfHttp2({ url, method, target, head }: RequestFacts): string[] {
  const [, ...lines] = head.slice(0, -4).split("\r\n");
  const fields = lines.map(splitField);
  const authority = fields.find(([name]) => name === "host")?.[1] ?? url.host;
  const path = method === "CONNECT" ? [] : [":scheme", url.protocol.slice(0, -1), ":path", target];
  return [
    ":method",
    method,
    ":authority",
    authority,
    ...path,
    ...fields.filter(([name]) => !HTTP1_ONLY.has(name)).flat(),
  ];
}

/** A line of a head; the name in lower case. */
function splitField(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

/** Reads a response of HTTP/1.1, after those with status 1xx. */
function readResponse(bytes: Buffer): ReceivedResponse {
  let text = bytes.toString("latin1");
  while (/^HTTP\/1\.[01] 1\d\d/.test(text)) text = text.slice(text.indexOf("\r\n\r\n") + 4);
  const end = text.indexOf("\r\n\r\n");
  if (!text.startsWith("HTTP/1.") || end < 0) return { headers: [], body: bytes };
  const [, ...lines] = text.slice(0, end).split("\r\n");
  return { headers: lines.flatMap(splitField), body: Buffer.from(text.slice(end + 4), "latin1") };
}
