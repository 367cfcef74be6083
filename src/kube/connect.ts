import { existsSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../base/errors.ts";
import { type KubeClient, KubeError, kubeError, type Method, type RequestOptions, type WatchEvent } from "./client.ts";
import {
  type ClusterAccess,
  type Credentials,
  type Env,
  inClusterAccess,
  SERVICE_ACCOUNT,
  unusable,
} from "./credentials.ts";
import { Throttle } from "./throttle.ts";

/** Milliseconds without a byte after which a request fails. Large lists take seconds to begin. */
const IDLE_MS = 60_000;
/** Milliseconds for which credentials are used before their files are read again; client-go's period. */
const CREDENTIALS_MS = 60_000;
/** Concurrent requests. Watches do not count: each has its own connection. */
const MAX_SOCKETS = 32;
/** Milliseconds until the first TCP keep-alive probe: a server that is gone ends a silent watch within 40 s. */
const PROBE_AFTER_MS = 30_000;
/** Default limits of requests that write, per second and at once: ten times client-go's, which are for small clusters. */
const WRITES_PER_SECOND = 50;
const WRITE_BURST = 100;
/** How often a request is sent again when the server asks for it (429, or 5xx with Retry-After), and its longest wait. */
const MAX_REPEATS = 5;
const MAX_RETRY_AFTER_MS = 10_000;

interface ClientLimits {
  readonly writesPerSecond?: number;
  readonly writeBurst?: number;
}

/** A user's choice of the cluster; each field takes precedence over the kubeconfig. */
export interface ClusterChoice {
  /** Path of a kubeconfig. Default: `KUBECONFIG`, then `~/.kube/config`, then the ServiceAccount of the pod. */
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** A client of the cluster that `env` and `choice` name; see `findCluster`. @throws KubeError */
export async function connectCluster(env: NodeJS.ProcessEnv, choice: ClusterChoice = {}): Promise<HttpKubeClient> {
  return new HttpKubeClient(await findCluster(env, choice));
}

/** Where the API server is, and how to prove who we are. @throws KubeError (status 0, reason `Configuration`) if there is no usable configuration */
export async function findCluster(env: Env, choice: ClusterChoice = {}): Promise<ClusterAccess> {
  const files = choice.kubeconfig === undefined ? defaultFiles(env) : [choice.kubeconfig];
  if (files.length > 0) return (await import("./kubeconfig.ts")).kubeconfigAccess(files, choice.context);
  if (isInCluster(env)) return inClusterAccess(env);
  throw unusable(
    "no cluster is configured: KUBECONFIG is not set, there is no ~/.kube/config, and this is not a pod; name a file with --kubeconfig",
  );
}

function defaultFiles({ KUBECONFIG, HOME = homedir() }: Env): string[] {
  const named = (KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  // Like kubectl: of several files, those that do not exist are skipped.
  if (named.length > 0) return named.length === 1 ? named : named.filter((file) => existsSync(file));
  const file = join(HOME, ".kube", "config");
  return existsSync(file) ? [file] : [];
}

function isInCluster(env: Env): boolean {
  return env.KUBERNETES_SERVICE_HOST !== undefined && existsSync(`${SERVICE_ACCOUNT}/token`);
}

interface Send {
  readonly method: Method;
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  readonly accept?: string | undefined;
  readonly signal?: AbortSignal;
  readonly long?: boolean;
}

/**
 * The API server over HTTP/1.1 with connections that are kept. Credentials are read again every minute and after 401; requests
 * that write are throttled. Responses have no size limit, because the API server is trusted.
 */
export class HttpKubeClient implements KubeClient {
  readonly access: ClusterAccess;
  readonly #throttle: Throttle;
  #credentials: { readonly at: number; readonly value: Promise<Credentials> } | undefined;
  #agents: { readonly of: Credentials["tls"]; readonly short: http.Agent; readonly long: http.Agent } | undefined;

  constructor(
    access: ClusterAccess,
    { writesPerSecond = WRITES_PER_SECOND, writeBurst = WRITE_BURST }: ClientLimits = {},
  ) {
    this.access = access;
    this.#throttle = new Throttle(writesPerSecond, writeBurst);
  }

  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const { query = {}, body, contentType = "application/json", accept, signal } = options;
    const send: Send = {
      method,
      path: withQuery(path, query),
      accept,
      ...(body !== undefined && { body: JSON.stringify(body), contentType }),
      ...(signal !== undefined && { signal }),
    };
    for (let attempt = 0; ; attempt++) {
      if (method !== "GET") await this.#throttle.take(signal);
      const response = await this.#open(send);
      const text = await bodyOf(response, send);
      const status = response.statusCode ?? 0;
      if (status < 300) return parse<T>(text, response);
      const pause = attempt < MAX_REPEATS ? retryAfter(response) : undefined;
      if (pause === undefined) throw kubeError(status, text, method, send.path);
      await delay(pause, undefined, signal === undefined ? {} : { signal });
    }
  }

  async *watch<T>(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    accept?: string,
  ): AsyncIterable<WatchEvent<T>> {
    const send: Send = {
      method: "GET",
      path: withQuery(path, { ...query, watch: "true" }),
      accept,
      signal,
      long: true,
    };
    const response = await this.#open(send);
    const status = response.statusCode ?? 0;
    if (status >= 300) throw kubeError(status, await bodyOf(response, send), send.method, send.path);
    try {
      yield* jsonLines<WatchEvent<T>>(response);
    } catch (error) {
      if (!signal.aborted) throw broken(error, send);
    } finally {
      response.destroy();
    }
  }

  /** Closes connections that are kept; requests in progress end first. */
  close(): void {
    this.#agents?.short.destroy();
    this.#agents?.long.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** The response's head. The first 401 is discarded and the request repeated with credentials that are read again. */
  async #open(send: Send): Promise<http.IncomingMessage> {
    for (let attempt = 0; ; attempt++) {
      const credentials = await this.#current();
      try {
        const response = await this.#send(send, credentials);
        if (response.statusCode !== 401 || attempt > 0) return response;
        response.resume();
        this.#credentials = undefined;
      } catch (error) {
        // The server closed a kept connection while the request was on its way to it.
        const again = error instanceof StaleConnection && send.method !== "POST" && attempt === 0;
        if (!again) throw broken(error, send);
      }
    }
  }

  #current(): Promise<Credentials> {
    const now = performance.now();
    if (this.#credentials !== undefined && now - this.#credentials.at < CREDENTIALS_MS) return this.#credentials.value;
    const value = this.access.credentials();
    this.#credentials = { at: now, value };
    value.catch(() => {
      this.#credentials = undefined;
    });
    return value;
  }

  #agent({ tls, agent }: Credentials, long: boolean): http.Agent {
    if (agent !== undefined) return agent;
    if (this.#agents === undefined || !isDeepStrictEqual(this.#agents.of, tls)) {
      this.close();
      const Agent = this.access.server.protocol === "http:" ? http.Agent : https.Agent;
      const common = { keepAlive: true, keepAliveMsecs: PROBE_AFTER_MS, ...tls };
      this.#agents = { of: tls, short: new Agent({ ...common, maxSockets: MAX_SOCKETS }), long: new Agent(common) };
    }
    return long ? this.#agents.long : this.#agents.short;
  }

  #send(
    { method, path, body, contentType, accept = "application/json", signal, long = false }: Send,
    credentials: Credentials,
  ): Promise<http.IncomingMessage> {
    const { server } = this.access;
    const prefix = server.pathname.replace(/\/$/, "");
    const headers: Record<string, string | number | string[]> = { accept, ...credentials.headers };
    if (body !== undefined) {
      headers["content-type"] = contentType ?? "application/json";
      headers["content-length"] = Buffer.byteLength(body);
    }
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const { request } = server.protocol === "http:" ? http : https;
    const options: https.RequestOptions = {
      method,
      host: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port === "" ? (server.protocol === "http:" ? 80 : 443) : server.port,
      path: `${prefix}${path}`,
      headers,
      agent: this.#agent(credentials, long),
      ...credentials.tls,
      ...(signal !== undefined && { signal }),
    };
    const sent = request(options, resolve);
    sent.once("error", (error: NodeJS.ErrnoException) => {
      const stale = sent.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      reject(stale ? new StaleConnection(error.message, { cause: error }) : error);
    });
    // A watch may be silent for minutes; TCP keep-alive watches over it once it is open.
    sent.setTimeout(IDLE_MS, () => sent.destroy(new Error(`no response within ${IDLE_MS / 1000} s`)));
    if (long) sent.once("response", () => sent.setTimeout(0));
    sent.once("socket", (socket) => socket.setKeepAlive(true, PROBE_AFTER_MS));
    sent.end(body);
    return promise;
  }
}

/** The connection was closed before the server read the request. */
class StaleConnection extends Error {}

function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return text === "" ? path : `${path}?${text}`;
}

async function bodyOf(response: http.IncomingMessage, send: Send): Promise<string> {
  const parts: Buffer[] = [];
  try {
    for await (const part of response) parts.push(part as Buffer);
  } catch (error) {
    throw broken(error, send);
  }
  return Buffer.concat(parts).toString("utf8");
}

function parse<T>(text: string, response: http.IncomingMessage): T {
  if (!(response.headers["content-type"] ?? "").startsWith("application/json")) return text as T;
  return JSON.parse(text) as T;
}

/** Milliseconds after which the server asks for a repeat; undefined: it does not. */
function retryAfter({ statusCode = 0, headers }: http.IncomingMessage): number | undefined {
  const seconds = Number(headers["retry-after"]);
  if (statusCode !== 429 && (statusCode < 500 || headers["retry-after"] === undefined)) return undefined;
  return Math.min(MAX_RETRY_AFTER_MS, Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 1000);
}

function broken(error: unknown, { method, path, signal }: Send): unknown {
  if (error instanceof KubeError || signal?.aborted === true) return error;
  const [resource] = path.split("?", 1);
  return new KubeError(0, "Connection", `${method} ${resource}: ${messageOf(error)}`);
}

const LINE_FEED = 0x0a;

/** Parses a stream of JSON values, one a line. Lines may be of any length. @throws SyntaxError */
async function* jsonLines<T>(stream: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
  /** Parts of a line whose end has not arrived. */
  let begun: Uint8Array[] = [];
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      begun.push(chunk.subarray(from, end));
      const line = Buffer.concat(begun).toString("utf8");
      begun = [];
      from = end + 1;
      if (line.trim() !== "") yield JSON.parse(line) as T;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
  }
}
