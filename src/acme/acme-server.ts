/** The protocol with one ACME server (RFC 8555 6 and 7): nonces, signatures, errors. What to ask for is decided by the callers. */
import type { KeyObject } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { calculateJwkThumbprint, exportJWK, FlattenedSign, type JWK } from "jose";
import { GatewayError, messageOf } from "../base/errors.ts";
import { isObject, jsonOf } from "../base/fields.ts";
import { getHeader } from "../http/message/message.ts";
import { reasonOf } from "../upstream/callouts/callout.ts";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import type { CalloutResponse } from "../upstream/callouts/http-call.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { endedBy } from "./ended-by.ts";

/** Of one request. Servers of large CAs answer in less than a second, unless they are overloaded. */
const TIMEOUT_MS = 30_000;
/** A chain of certificates is the longest answer. */
const MAX_BYTES = 1024 * 1024;
/** Characters of an error that logs, the storage and `tgctl certs` show. */
const SHOWN = 1000;
/** A server may reject nonces at any time (RFC 8555 6.5), one that is about to restart even all of them. */
const NONCE_TRIES = 10;
/** After a response that says that the server has trouble, and after none at all. */
const FAULT_TRIES = 3;
const FAULT_PAUSE_MS = 1000;
/** Requests without an account at a time: after a start, every certificate asks when to renew it. */
const MAX_READS = 4;
const FAILURE_MEMORY_MS = 10_000;

/** An error that the server has reported (RFC 8555 6.7), or why there was no usable response. */
export class AcmeError extends Error {
  /** Without `urn:ietf:params:acme:error:`, such as `rateLimited`; `` if the server gave none. */
  readonly type: string;
  readonly status: number;
  /** Milliseconds that the server wants to be left alone (Retry-After). */
  readonly retryAfter: number | undefined;

  constructor(type: string, status: number, message: string, retryAfter?: number) {
    super(message);
    this.type = type;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** What a server offers (RFC 8555 7.1.1, RFC 9773 4.1). */
interface Directory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly renewalInfo?: string;
  readonly meta?: { readonly externalAccountRequired?: boolean; readonly termsOfService?: string };
}

/** The key of an account, and how it appears in signatures. */
export interface AccountKey {
  readonly key: KeyObject;
  readonly jwk: JWK;
  readonly thumbprint: string;
}

/** `key`: a private key on P-256. */
export async function accountKey(key: KeyObject): Promise<AccountKey> {
  const { kty, crv, x, y } = (await exportJWK(key)) as { kty: string; crv: string; x: string; y: string };
  const jwk = { kty, crv, x, y };
  return { key, jwk, thumbprint: await calculateJwkThumbprint(jwk) };
}

/** A response with JSON. */
export interface Answer {
  readonly body: unknown;
  /** The URL of what was created. */
  readonly location: string | undefined;
  /** As `AcmeError.retryAfter`. */
  readonly retryAfter: number | undefined;
}

export class AcmeServer {
  readonly #url: string;
  readonly #root: string | undefined;
  readonly #fetch: Fetch;
  readonly #signal: AbortSignal;
  readonly #reads = new ConcurrencyLimit(MAX_READS);
  /** While it is asked for and once it is known; after a failure for a while, too. */
  #directory: Promise<Directory> | undefined;
  #nonce: string | undefined;

  /** `root`: CAs of the server's own certificate, PEM; undefined: those of the runtime. `signal` ends all calls. */
  constructor(directory: string, root: string | undefined, fetch: Fetch, signal: AbortSignal) {
    this.#url = directory;
    this.#root = root;
    this.#fetch = endedBy(signal, fetch);
    this.#signal = signal;
  }

  /** Rejects with an AcmeError. */
  directory(): Promise<Directory> {
    this.#directory ??= this.#readDirectory();
    return this.#directory;
  }

  async #readDirectory(): Promise<Directory> {
    try {
      return directoryIn(await this.get(this.#url), this.#url);
    } catch (error) {
      // A thousand certificates may ask now, and the answer would be the same.
      setTimeout(() => {
        this.#directory = undefined;
      }, FAILURE_MEMORY_MS).unref();
      throw error;
    }
  }

  /** A request that needs no account. Rejects with an AcmeError. */
  async get(url: string): Promise<Answer> {
    return answerOf(await this.#reads.run(() => this.#send(url, "GET")));
  }

  /**
   * A signed request; `payload` undefined: only reads (POST-as-GET, RFC 8555 6.3). `account`: its URL; undefined: the request creates one.
   * Rejects with an AcmeError.
   */
  async post(url: string, key: AccountKey, account: string | undefined, payload: unknown): Promise<Answer> {
    return answerOf(await this.#post(url, key, account, payload));
  }

  /** The text behind a URL that only the account may read, such as a chain of certificates. */
  async text(url: string, key: AccountKey, account: string): Promise<string> {
    return textOf(await this.#post(url, key, account, undefined));
  }

  async #post(url: string, key: AccountKey, account: string | undefined, payload: unknown): Promise<CalloutResponse> {
    for (let left = NONCE_TRIES; ; left--) {
      const body = await this.#sign(url, key, account, payload);
      try {
        return await this.#send(url, "POST", body);
      } catch (error) {
        if (!(error instanceof AcmeError && error.type === "badNonce") || left === 1) throw error;
      }
    }
  }

  async #sign(url: string, { key, jwk }: AccountKey, account: string | undefined, payload: unknown): Promise<Buffer> {
    const nonce = this.#nonce ?? (await this.#freshNonce());
    // Each nonce is for one request, and requests run side by side.
    this.#nonce = undefined;
    const text = payload === undefined ? "" : JSON.stringify(payload);
    const signed = await new FlattenedSign(Buffer.from(text))
      .setProtectedHeader({ alg: "ES256", nonce, url, ...(account === undefined ? { jwk } : { kid: account }) })
      .sign(key);
    return Buffer.from(JSON.stringify(signed));
  }

  async #freshNonce(): Promise<string> {
    const { newNonce } = await this.directory();
    const nonce = getHeader((await this.#send(newNonce, "GET")).headers, "replay-nonce");
    if (nonce === undefined) throw new AcmeError("", 200, "the server sends no nonces");
    return nonce;
  }

  /** Rejects with an AcmeError for everything but success. */
  async #send(url: string, method: "GET" | "POST", body?: Buffer): Promise<CalloutResponse> {
    for (let left = FAULT_TRIES; ; left--) {
      try {
        return await this.#sendOnce(url, method, body);
      } catch (error) {
        // A signed request is not repeated: its nonce may have been used.
        if (left === 1 || body !== undefined || !(error instanceof AcmeError) || error.status < 500) throw error;
        if (error.retryAfter !== undefined) throw error;
      }
      await delay(FAULT_PAUSE_MS, undefined, { signal: this.#signal, ref: false });
    }
  }

  async #sendOnce(url: string, method: "GET" | "POST", body?: Buffer): Promise<CalloutResponse> {
    const headers = [
      "user-agent",
      "tracegate",
      ...(body === undefined ? [] : ["content-type", "application/jose+json"]),
    ];
    let response: CalloutResponse;
    try {
      response = await this.#fetch(url, {
        method,
        headers,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
        ...(body !== undefined && { body }),
        ...(this.#root !== undefined && { root: this.#root }),
      });
    } catch (error) {
      const reason = error instanceof GatewayError ? reasonOf(error) : messageOf(error);
      throw new AcmeError("", 503, `no response from ${URL.parse(url)?.host ?? url}: ${reason}`);
    }
    this.#nonce = getHeader(response.headers, "replay-nonce") ?? this.#nonce;
    if (response.status >= 200 && response.status < 300) return response;
    throw problemOf(response);
  }
}

function answerOf(response: CalloutResponse): Answer {
  const body = jsonOf(textOf(response));
  return { body, location: getHeader(response.headers, "location"), retryAfter: retryAfterOf(response) };
}

function textOf({ body }: CalloutResponse): string {
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8");
}

/** RFC 9110 10.2.3: seconds or a date; in milliseconds from now. */
function retryAfterOf({ headers }: CalloutResponse): number | undefined {
  const text = getHeader(headers, "retry-after");
  if (text === undefined) return undefined;
  const time = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(time) ? undefined : Math.max(0, time);
}

/** RFC 7807, with the reasons for single names (RFC 8555 6.7.1). */
function problemOf(response: CalloutResponse): AcmeError {
  const problem = jsonOf(textOf(response));
  const retryAfter = retryAfterOf(response);
  if (!isObject(problem))
    return new AcmeError("", response.status, `the server responds with status ${response.status}`, retryAfter);
  return new AcmeError(typeOf(problem), response.status, describe(problem), retryAfter);
}

/** The text of a problem document. */
export function describe(problem: Readonly<Record<string, unknown>>): string {
  const subproblems = Array.isArray(problem.subproblems) ? problem.subproblems.filter(isObject) : [];
  const reasons = subproblems.map((each) => (typeof each.detail === "string" ? each.detail : typeOf(each)));
  const detail = typeof problem.detail === "string" ? problem.detail : "";
  return [`${typeOf(problem) || "error"}: ${detail}`, ...reasons].join("; ").slice(0, SHOWN);
}

function typeOf({ type }: Readonly<Record<string, unknown>>): string {
  return typeof type === "string" ? type.replace("urn:ietf:params:acme:error:", "") : "";
}

function directoryIn({ body }: Answer, url: string): Directory {
  const { newNonce, newAccount, newOrder, renewalInfo, meta } = isObject(body) ? body : {};
  if (typeof newNonce !== "string" || typeof newAccount !== "string" || typeof newOrder !== "string")
    throw new AcmeError("", 200, `${url} is not the directory of an ACME server`);
  return {
    newNonce,
    newAccount,
    newOrder,
    ...(typeof renewalInfo === "string" && { renewalInfo }),
    ...(isObject(meta) && { meta }),
  };
}
