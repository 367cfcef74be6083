/** What requests to backends say about their origin: X-Forwarded-* and the request's id. */
import { randomUUID } from "node:crypto";
import { Networks } from "../../base/ip-address.ts";
import { makeFields } from "../../http/h1/serialize.ts";
import {
  addFields,
  type HeaderList,
  type HttpRequest,
  type Latin1,
  removeHeader,
  setHeader,
} from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { ClientConnection, Downstream } from "../../http/stream.ts";
import type { Frontend } from "../../ir/ir.ts";

export const DEFAULT_ID_HEADER = "x-request-id";

/** What X-Forwarded-For says of a client of a Unix socket; the word of RFC 7239, section 6.2. */
const NO_ADDRESS = "unknown";
const FOR = "x-forwarded-for";
const PROTO = "x-forwarded-proto";
const HOST = "x-forwarded-host";
const CLIENT_CERT = "x-forwarded-client-cert";
const PREFIX = "x-forwarded-";

/** Ids that a client may choose: only characters that are safe for readers of logs and spans. */
const ID = /^[\w.~:/+=@-]{1,128}$/;

/** The origin of a request. */
type Origin = Pick<Downstream, "connection" | "hasForwarded">;

/**
 * `frontendPolicies.http.forwarded` and `requestId`: what a request to a backend says about its origin, and its id in logs, traces and
 * spans. Clients can claim anything, so only fields of trusted proxies are kept.
 */
export class Forwarding {
  readonly #mode: "replace" | "append" | "off";
  readonly #proxies: Networks | undefined;
  /** Whether a connection comes from a trusted proxy; kept because the look-up takes a microsecond. */
  readonly #trusted = new WeakMap<ClientConnection, boolean>();
  readonly #ids = new RequestIds();
  readonly #idHeader: string;
  readonly #idMode: "preserve" | "generate" | "off";

  constructor({ forwarded, requestId }: Pick<Frontend, "forwarded" | "requestId">) {
    const { mode = "replace", trustedProxies = [] } = forwarded ?? {};
    this.#mode = mode;
    this.#proxies = trustedProxies.length === 0 ? undefined : new Networks(trustedProxies);
    this.#idHeader = requestId?.header ?? DEFAULT_ID_HEADER;
    this.#idMode = requestId?.mode ?? "preserve";
  }

  /**
   * The id of a request: the client's if it may choose one, otherwise a new one; undefined if ids are off. With `trustedProxies`, only
   * those may choose.
   */
  requestId({ headers }: HttpRequest, { connection }: Origin): Latin1 | undefined {
    if (this.#idMode === "off") return undefined;
    if (this.#idMode === "preserve") {
      const sent = onlyValue(headers, this.#idHeader);
      if (sent !== undefined && ID.test(sent) && (this.#proxies === undefined || this.#trusts(connection))) {
        // ID allows ASCII only.
        return sent as Latin1;
      }
    }
    return this.#ids.next();
  }

  /** Writes the fields into a request. `id` comes from `requestId`. */
  apply(request: HttpRequest, { connection, hasForwarded }: Origin, id: Latin1 | undefined): void {
    const { headers } = request;
    if (id !== undefined) setHeader(headers, this.#idHeader, id);
    if (!hasForwarded) {
      if (this.#mode === "off") return;
      const { authority } = request;
      // Most connections request the same host all the time. Requests of HTTP/1.0 may lack Host.
      if (connection.madeFields === undefined || connection.madeFields.fields[5] !== (authority || undefined)) {
        const { protocol } = connection;
        const client = connection.remoteAddress || NO_ADDRESS;
        // Not by a spread, which would leave the array with room for more in the memory of each connection.
        connection.madeFields = makeFields(
          authority === "" ? [FOR, client, PROTO, protocol] : [FOR, client, PROTO, protocol, HOST, authority],
        );
      }
      addFields(headers, connection.madeFields.fields);
      return;
    }
    // The gateway terminates TLS, so a client's claim about its certificate is unverified.
    removeHeader(headers, CLIENT_CERT);
    if (this.#mode !== "off") this.#rewrite(request, connection);
  }

  /**
   * The address of the client: the one of the connection, which a PROXY header may have set. If a trusted proxy has that address, the last
   * one in X-Forwarded-For that no trusted proxy has; the client may have made up those before it.
   */
  clientAddress({ headers }: HttpRequest, from: ClientConnection): string {
    const { remoteAddress } = from;
    if (!this.isReported(from)) return remoteAddress;
    const reported = valuesOf(headers, FOR).flatMap((value) => value.split(","));
    const client = reported.findLast((each) => !this.#isProxy(withoutPort(each)));
    return client === undefined ? remoteAddress : withoutPort(client);
  }

  /** Whether the address of the client is what a trusted proxy says. */
  isReported(from: ClientConnection): boolean {
    return this.#trusts(from) && this.#isProxy(from.remoteAddress);
  }

  #isProxy(address: string): boolean {
    return this.#proxies?.contains(address) === true;
  }

  #rewrite({ headers, authority }: HttpRequest, from: ClientConnection): void {
    const trusted = this.#trusts(from);
    const chain = trusted || this.#mode === "append" ? valuesOf(headers, FOR) : [];
    if (!trusted) removeForwarded(headers);
    setHeader(headers, FOR, latin1([...chain, from.remoteAddress || NO_ADDRESS].join(", ")));
    if (onlyValue(headers, PROTO) === undefined) setHeader(headers, PROTO, from.protocol);
    if (onlyValue(headers, HOST) !== undefined) return;
    if (authority === "") removeHeader(headers, HOST);
    else setHeader(headers, HOST, latin1(authority));
  }

  #trusts(from: ClientConnection): boolean {
    if (this.#proxies === undefined) return false;
    let trusted = this.#trusted.get(from);
    if (trusted === undefined) {
      // The TCP peer: a PROXY header may name any address, and a trusted proxy may set the fields.
      trusted = this.#proxies.contains(from.rawAddress);
      this.#trusted.set(from, trusted);
    }
    return trusted;
  }
}

/** The value of a field that occurs once; undefined otherwise. */
function onlyValue(headers: HeaderList, name: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== name) continue;
    if (found !== undefined) return undefined;
    found = headers[i + 1];
  }
  return found;
}

function valuesOf(headers: HeaderList, name: string): string[] {
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1] === name);
}

/** Some proxies write `192.0.2.7:4711` or `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const [, inBrackets, beforePort] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text.trim()) ?? [];
  return inBrackets ?? beforePort ?? text.trim();
}

function removeForwarded(headers: HeaderList): void {
  let to = 0;
  for (let from = 0; from < headers.length; from += 2) {
    const name = headers[from] as string;
    if (name === "forwarded" || name.startsWith(PREFIX)) continue;
    headers[to++] = name;
    headers[to++] = headers[from + 1] as string;
  }
  headers.length = to;
}

/** Characters of the random start. The last four of the 36 are a counter; when it wraps, a new random start follows. */
const KEPT = 32;
const IDS = 65_536;
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Makes ids in the form of a random UUID (RFC 9562, version 4), for one thread: a random start, then a counter. Ids have to be
 * unique, not hard to guess, and a new UUID for each request would cost 0.2 µs more, most of it for building a text of 36 pieces.
 */
export class RequestIds {
  #start = "";
  #next = IDS;

  next(): Latin1 {
    if (this.#next === IDS) {
      this.#start = randomUUID().slice(0, KEPT);
      this.#next = 0;
    }
    const count = this.#next++;
    // Hexadecimal digits and dashes.
    return `${this.#start}${HEX[count >> 8]}${HEX[count & 255]}` as Latin1;
  }
}
