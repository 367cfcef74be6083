/**
 * The undocumented parts of `node:tls` servers that this project uses; see node-internals.ts. Checked where they are used, because `node:tls`
 * is loaded for the first listener that needs it.
 */
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import type { Server } from "node:tls";

/** What encrypts and signs a session ticket (RFC 5077 4). */
export interface TicketKey {
  /** 16 bytes, at the start of the ticket. */
  readonly name: Buffer;
  /** 16 bytes. */
  readonly aes: Buffer;
  /** 32 bytes; the documented API takes the first 16. */
  readonly hmac: Buffer;
}

export interface TicketKeyring {
  /** For new tickets; changes with a rotation. */
  readonly current: TicketKey;
  /** The key of a client's ticket by its name; undefined = the session cannot be resumed. */
  find(name: Buffer): TicketKey | undefined;
  /** Whether a resumed session gets a new ticket. */
  readonly renew: boolean;
}

/** The result of OpenSSL's callback for the key of a ticket: 0 = unknown, 1 = known, 2 = known and a new ticket should follow. */
type TicketAnswer = readonly [found: 0 | 1 | 2, hmac: Buffer, aes: Buffer, name?: Buffer, iv?: Buffer];

interface ServerContext {
  enableTicketKeyCallback?(): void;
  onticketkeycallback?(name: Buffer, iv: Buffer, encrypts: boolean): TicketAnswer;
  setAllowPartialTrustChain?(): void;
}

const contextOf = (server: Server): ServerContext | undefined =>
  (server as { readonly _sharedCreds?: { readonly context?: ServerContext } })._sharedCreds?.context;

const NO_KEY = Buffer.alloc(16);
const IV_BYTES = 16;
/** Random bytes are cheaper in bulk: 16 bytes take 2 µs on their own, and a tenth of that as a part of 4,096. */
const POOL_BYTES = 4096;
let pool = Buffer.alloc(0);

/** 16 bytes that no other ticket has. */
function randomIv(): Buffer {
  if (pool.length < IV_BYTES) pool = randomBytes(POOL_BYTES);
  const iv = pool.subarray(0, IV_BYTES);
  pool = pool.subarray(IV_BYTES);
  return iv;
}

/**
 * Makes `server` take the keys of its tickets from `keys`. The documented `setTicketKeys` supports one key only, so
 * a rotation would end all sessions, and it gives resumed sessions of TLS 1.3 no new ticket, although clients should use each
 * ticket once (RFC 8446 C.4).
 */
function setTickets(server: Server, keys: TicketKeyring): void {
  const context = contextOf(server);
  if (typeof context?.enableTicketKeyCallback !== "function") {
    documentedSetTickets(server, keys);
    return;
  }
  context.onticketkeycallback = (name, _iv, encrypts) => {
    if (encrypts) {
      const { current } = keys;
      return [1, current.hmac, current.aes, current.name, randomIv()];
    }
    const key = keys.find(name);
    return key === undefined ? [0, NO_KEY, NO_KEY] : [keys.renew ? 2 : 1, key.hmac, key.aes];
  };
  context.enableTicketKeyCallback();
}

/** A server's options omit `allowPartialTrustChain` of `createSecureContext`, by which a CA is trusted without the one above it. */
function trustIntermediates(server: Server): void {
  contextOf(server)?.setAllowPartialTrustChain?.();
}

/**
 * Removes the deadline of `server`'s handshakes. Node starts a timer of 120 s for each, and its documented option cannot turn it off.
 * The timer costs a hundredth of a handshake's CPU, and the TLS stage has a deadline already.
 */
function noDeadline(server: Server): void {
  const properties = server as object as Record<symbol, unknown>;
  const key = Object.getOwnPropertySymbols(server).find((each) => each.description === "handshake-timeout");
  if (key !== undefined) properties[key] = 0;
}

/** The documented way: sets the current key for each new connection. */
export function documentedSetTickets(server: Server, keys: TicketKeyring): void {
  let used: TicketKey | undefined;
  server.prependListener("connection", () => {
    const { current } = keys;
    if (current === used) return;
    used = current;
    server.setTicketKeys(Buffer.concat([current.name, current.hmac.subarray(0, 16), current.aes]));
  });
}

/**
 * The connection below a socket that a `tls.Server` has made for it; undefined = their addresses have to be compared, which
 * costs 10 µs a handshake.
 */
function carrierOf(socket: object): Socket | undefined {
  const { _parent: carrier } = socket as { readonly _parent?: unknown };
  return carrier instanceof Socket ? carrier : undefined;
}

/** The functions in use. They are called through this object, at most once per connection, so that tests can replace them. */
export const tlsServers = { setTickets, trustIntermediates, noDeadline, carrierOf };
