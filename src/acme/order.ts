/** One order (RFC 8555 7.4): prove that the gateway serves a name, and get a certificate for it. */
import { createHash } from "node:crypto";
import { addAbortListener } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../base/errors.ts";
import { isObject } from "../base/fields.ts";
import type { Logger } from "../base/log.ts";
import { makeRequest } from "../tls/x509/request.ts";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import type { Account } from "./account.ts";
import { AcmeError, type AcmeServer, type Answer, describe } from "./acme-server.ts";
import { publish } from "./challenges.ts";
import { callHook } from "./dns-hook.ts";
import type { AcmeSettings, ManagedCertificate } from "./settings.ts";

/** Milliseconds between two questions to a server that names no time; it grows up to the second. */
const POLL_MS = 200;
const LONGEST_POLL_MS = 10_000;
/** A validation, or the issuing, is given up after this long. */
const PATIENCE_MS = 10 * 60_000;
/** A DNS hook has so long to remove its record once the order has been ended, as by a shutdown. */
const LAST_CLEANUP_MS = 5_000;

/** A certificate that was issued, PEM: the server's certificate first, then those of its CAs. */
interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

/** What an order needs besides the certificate's settings. */
interface OrderContext {
  readonly server: AcmeServer;
  readonly account: Account;
  readonly fetch: Fetch;
  readonly log: Logger;
  /** Identifies the certificate that is renewed (RFC 9773 5). */
  readonly replaces: string | undefined;
  /** Ends the order. */
  readonly signal: AbortSignal;
}

/** Orders a certificate. @throws AcmeError if the server refuses it, Error for every other failure; the message says why */
export async function order({ name, settings }: ManagedCertificate, context: OrderContext): Promise<IssuedCertificate> {
  const { server, account } = context;
  const { newOrder } = await server.directory();
  const created = await begin(name, newOrder, context);
  const url = created.location;
  const { authorizations, finalize } = created;
  for (const authorization of authorizations) await authorize(authorization, settings, context);
  const { request, key } = makeRequest([name]);
  await server.post(finalize, account.key, account.url, { csr: request.toString("base64url") });
  const done = await poll(url, context, (body) => body.status === "valid" || body.status === "invalid");
  if (done.status !== "valid") throw problemIn(done, "the order");
  if (typeof done.certificate !== "string")
    throw new AcmeError("", 200, "the server has not said where the certificate is");
  return { cert: await server.text(done.certificate, account.key, account.url), key };
}

interface OrderParts {
  readonly location: string;
  readonly finalize: string;
  readonly authorizations: readonly string[];
}

async function begin(name: string, newOrder: string, { server, account, replaces }: OrderContext): Promise<OrderParts> {
  const identifiers = [{ type: "dns", value: name }];
  const send = (more: object): Promise<Answer> =>
    server.post(newOrder, account.key, account.url, { identifiers, ...more });
  let answer: Answer;
  try {
    answer = await send(replaces === undefined ? {} : { replaces });
  } catch (error) {
    // The certificate was replaced already, or the server has forgotten it. It is due all the same.
    const refused = error instanceof AcmeError && (error.type === "alreadyReplaced" || error.type === "malformed");
    if (replaces === undefined || !refused) throw error;
    answer = await send({});
  }
  const { body, location } = answer;
  const { finalize, authorizations } = isObject(body) ? body : {};
  if (location === undefined || typeof finalize !== "string" || !Array.isArray(authorizations))
    throw new AcmeError("", 201, "the server has responded with something that is not an order");
  return { location, finalize, authorizations: authorizations.map(String) };
}

/** Answers a challenge of one name, and waits for the server's verdict. */
async function authorize(url: string, settings: AcmeSettings, context: OrderContext): Promise<void> {
  const { server, account } = context;
  const { body } = await server.post(url, account.key, account.url, undefined);
  if (!isObject(body))
    throw new AcmeError("", 200, "the server has responded with something that is not an authorization");
  // It is valid already if the account has proved the name lately.
  if (body.status === "valid") return;
  const challenges = Array.isArray(body.challenges) ? body.challenges.filter(isObject) : [];
  const challenge = challenges.find(({ type }) => type === settings.challenge);
  const name = isObject(body.identifier) ? String(body.identifier.value) : "";
  if (challenge === undefined) {
    const offered = challenges.map(({ type }) => String(type)).join(", ");
    throw new AcmeError(
      "",
      200,
      `the server does not offer ${settings.challenge} for ${name}, but ${offered || "nothing"}`,
    );
  }
  const keyAuthorization = `${String(challenge.token)}.${account.key.thumbprint}`;
  const takeBack = await answer(name, String(challenge.token), keyAuthorization, settings, context);
  try {
    await server.post(String(challenge.url), account.key, account.url, {});
    const done = await poll(url, context, ({ status }) => status !== "pending" && status !== "processing");
    if (done.status !== "valid") throw problemIn(done, `the validation of ${name}`);
  } finally {
    await takeBack();
  }
}

/** Makes the answer to a challenge available; resolves with a function that takes it back. */
async function answer(
  name: string,
  token: string,
  keyAuthorization: string,
  { challenge: type, storage, dns }: AcmeSettings,
  { fetch, log, signal }: OrderContext,
): Promise<() => Promise<void>> {
  if (type === "http-01") return publish(storage, { type, token }, keyAuthorization);
  if (type === "tls-alpn-01") return publish(storage, { type, name }, keyAuthorization);
  if (dns === undefined) throw new Error("dns-01 has no hook");
  const record = {
    name: `_acme-challenge.${name}.`,
    value: createHash("sha256").update(keyAuthorization).digest("base64url"),
  };
  // A leftover record is harmless, and must neither fail an order that succeeded nor hide why one failed.
  const cleanUp = async (): Promise<void> => {
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    using _ended = addAbortListener(signal, () => {
      timer = setTimeout(() => late.abort(), LAST_CLEANUP_MS);
    });
    try {
      await callHook(dns.hook, "cleanup", record, fetch, late.signal);
    } catch (error) {
      log.warn("a TXT record was not removed", { record: record.name, error: messageOf(error) });
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    await callHook(dns.hook, "present", record, fetch, signal);
    await delay(dns.propagation, undefined, { signal, ref: false });
  } catch (error) {
    await cleanUp();
    throw error;
  }
  return cleanUp;
}

/** Asks again until `done`, as often as the server allows. */
async function poll(
  url: string,
  { server, account, signal }: OrderContext,
  done: (body: Readonly<Record<string, unknown>>) => boolean,
): Promise<Readonly<Record<string, unknown>>> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let pause = POLL_MS; ; pause = Math.min(LONGEST_POLL_MS, pause * 1.5)) {
    const { body, retryAfter } = await server.post(url, account.key, account.url, undefined);
    if (isObject(body) && done(body)) return body;
    if (performance.now() > deadline) throw new AcmeError("", 200, "the server has not decided within 10 minutes");
    // Not faster, even if the server says "at once".
    const wait = Math.min(Math.max(retryAfter ?? pause, POLL_MS), PATIENCE_MS);
    await delay(wait, undefined, { signal, ref: false });
  }
}

/** Why an order or authorization is invalid: the errors of its challenges, or its own. */
function problemIn(body: Readonly<Record<string, unknown>>, what: string): AcmeError {
  const challenges = Array.isArray(body.challenges) ? body.challenges.filter(isObject) : [];
  const errors = [body.error, ...challenges.map(({ error }) => error)].filter(isObject);
  const reason = errors.map(describe).join("; ") || `its status is ${String(body.status)}`;
  return new AcmeError("", 403, `${what} failed: ${reason}`);
}
