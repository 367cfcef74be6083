/**
 * A small API server for tests, over real HTTP: list with pages, watch with bookmarks and compaction, get, create, update, merge
 * patch, server-side apply, dry runs of create and update, status subresources, Lease conflicts, TokenReview, port forwarding. Any kind may be stored. What it does not do:
 * validation, defaults, conflicts between field managers, garbage collection, finalizers.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { objectKey } from "../../../src/base/object-key.ts";
import { HttpKubeClient } from "../../../src/kube/connect.ts";
import type { ClusterAccess } from "../../../src/kube/credentials.ts";
import type { Kind, KubeObject, Objects } from "../../../src/kube/objects.ts";
import { RESOURCES } from "../../../src/kube/resources.ts";
import { applied, isJson, type Json, mergePatch } from "./merge.ts";
import { servePortForward } from "./port-forward.ts";
import { type Change, Refused, Store, type Stored } from "./store.ts";

/** One request that the server has received, for assertions on how much was written. */
export interface Received {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: unknown;
  /** Only the metadata of objects is wanted. */
  readonly metadataOnly: boolean;
}

interface Target {
  /** As in `Store`. */
  readonly collection: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

interface Watcher {
  readonly target: Target;
  readonly selects: (object: Stored) => boolean;
  readonly response: ServerResponse;
  readonly bookmarks: boolean;
  readonly metadataOnly: boolean;
}

/** An object for tests: what the server sets itself may be left out. */
export type ObjectDraft = Omit<KubeObject, "metadata"> & {
  readonly metadata: Omit<KubeObject["metadata"], "namespace"> & { readonly namespace?: string };
};

export class TestApiServer {
  readonly store = new Store();
  readonly http: Server;
  /** Every request in order. */
  readonly received: Received[] = [];
  /** Collections that are not installed: 404, as without their CRD. */
  readonly missing = new Set<string>();
  /** The user that a token belongs to, for TokenReview: `system:serviceaccount:<namespace>:<name>`. Others are not authenticated. */
  readonly tokens = new Map<
    string,
    { readonly username: string; readonly audiences: readonly string[]; readonly extra?: Json }
  >();
  /** Where a port of a pod leads: `<namespace>/<pod>:<port>` to a port of this machine. */
  readonly ports = new Map<string, number>();
  /** If set, requests without this bearer token get 401. */
  bearer: string | undefined;
  /** How many further requests get 429. */
  busy = 0;
  /** Called before each request; may wait, or throw `Refused`. */
  intercept: ((request: Received) => Promise<void> | void) | undefined;
  readonly #watchers = new Set<Watcher>();
  readonly #upgraded = new Set<Duplex>();
  readonly #applied = new Map<string, Json>();
  #port = 0;

  private constructor() {
    this.http = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => fail(response, error));
    });
    this.http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#upgrade(request, socket, head).catch((error: unknown) => refuseUpgrade(socket, error));
    });
    this.store.onChange((change) => this.#notify(change));
  }

  static async start(): Promise<TestApiServer> {
    const server = new TestApiServer();
    await server.listen();
    return server;
  }

  /** After `stop`: on the same port, with the same objects. */
  async listen(): Promise<void> {
    this.http.listen(this.#port, "127.0.0.1");
    await once(this.http, "listening");
    this.#port = (this.http.address() as AddressInfo).port;
  }

  /** Stops listening and cuts all connections, as when the API server restarts. */
  async stop(): Promise<void> {
    const closed = once(this.http, "close");
    this.http.close();
    this.http.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.http.listening) await this.stop();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get access(): ClusterAccess {
    return {
      server: new URL(this.url),
      namespace: "default",
      credentials: async () => ({
        tls: {},
        headers: this.bearer === undefined ? {} : { authorization: `Bearer ${this.bearer}` },
      }),
    };
  }

  client(): HttpKubeClient {
    return new HttpKubeClient(this.access, { writesPerSecond: 10_000, writeBurst: 10_000 });
  }

  /** The text of a kubeconfig with one context, `test`. */
  get kubeconfig(): string {
    const cluster = { server: this.url, "insecure-skip-tls-verify": true };
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [{ name: "test", cluster }],
      users: [{ name: "test", user: { token: this.bearer ?? "test" } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    });
  }

  /** Creates or replaces an object of a kind that tracegate knows. */
  set(object: ObjectDraft & { readonly kind: Kind }): Stored {
    return this.store.put(collectionOf(object.kind), objectKey(object.metadata), object);
  }

  get<K extends Kind>(kind: K, key: string): Objects[K] | undefined {
    return this.store.get(collectionOf(kind), key) as Objects[K] | undefined;
  }

  delete(kind: Kind, key: string): void {
    this.store.delete(collectionOf(kind), key);
  }

  /** Drops the history: a watch from an older version gets 410. */
  compact(): void {
    this.store.compact();
  }

  /** How many watches are open. */
  get watches(): number {
    return this.#watchers.size;
  }

  /** Ends all watches: properly, or by cutting their connections. */
  endWatches(how: "end" | "cut" = "end"): void {
    for (const watcher of this.#watchers) {
      this.#watchers.delete(watcher);
      if (how === "end") watcher.response.end();
      else watcher.response.destroy();
    }
  }

  /** Tells watchers the current version, without a change of what they watch. */
  sendBookmarks(): void {
    for (const watcher of this.#watchers) if (watcher.bookmarks) this.#bookmark(watcher);
  }

  /** `portforward` of a pod; other upgrades are rejected. */
  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(request.url ?? "/", this.url);
    const received = { method: "GET", path, query, contentType: "", body: undefined, metadataOnly: false };
    this.received.push(received);
    this.#authenticate(request);
    await this.intercept?.(received);
    const target = targetOf(path);
    if (target?.collection !== "v1/pods" || target.subresource !== "portforward")
      throw new Refused(400, "BadRequest", `${path} cannot be upgraded`);
    this.#existing(target);
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
    const port = Number(query.get("ports"));
    servePortForward(request, socket, head, port, this.ports.get(`${keyOf(target)}:${port}`));
  }

  #authenticate({ headers }: IncomingMessage): void {
    if (this.bearer !== undefined && headers.authorization !== `Bearer ${this.bearer}`)
      throw new Refused(401, "Unauthorized", "Unauthorized");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    const text = await textOf(request);
    const contentType = request.headers["content-type"] ?? "";
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    const received = {
      method: request.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      contentType,
      body,
      metadataOnly: request.headers.accept?.includes("as=PartialObjectMetadata") === true,
    };
    this.received.push(received);
    this.#authenticate(request);
    await this.intercept?.(received);
    if (this.busy-- > 0) {
      response.writeHead(429, { "retry-after": "0.05" }).end();
      return;
    }
    this.busy = 0;
    if (url.pathname === "/version") return reply(response, 200, { major: "1", minor: "36", gitVersion: "v1.36.3" });
    const target = targetOf(url.pathname);
    if (target === undefined || this.missing.has(target.collection)) {
      response.writeHead(404, { "content-type": "text/plain; charset=utf-8" }).end("404 page not found\n");
      return;
    }
    if (received.method === "GET" && target.name === undefined && url.searchParams.get("watch") === "true")
      return this.#watch(target, received, response);
    const { status, result } = this.#answer(target, received);
    reply(response, status, result);
  }

  #answer(
    target: Target,
    { method, query, contentType, body, metadataOnly }: Received,
  ): { status: number; result: Json } {
    if (target.collection === "authentication.k8s.io/v1/tokenreviews" && method === "POST")
      return { status: 201, result: this.#review(body) };
    switch (method) {
      case "GET":
        return {
          status: 200,
          result: target.name === undefined ? this.#list(target, query, metadataOnly) : this.#existing(target),
        };
      case "POST":
        return { status: 201, result: this.#create(target, body, isDry(query)) };
      case "PUT":
        return { status: 200, result: this.#update(target, body, isDry(query)) };
      case "PATCH":
        return this.#patch(target, contentType, query, body);
      case "DELETE": {
        const before = this.#existing(target);
        this.store.delete(target.collection, keyOf(target));
        return { status: 200, result: before };
      }
      default:
        throw new Refused(405, "MethodNotAllowed", `${method} is not supported`);
    }
  }

  #existing(target: Target): Stored {
    const object = this.store.get(target.collection, keyOf(target));
    if (object === undefined)
      throw new Refused(404, "NotFound", `${target.collection} "${target.name}" not found`, target.name);
    return object;
  }

  #list(target: Target, query: URLSearchParams, metadataOnly: boolean): Json {
    const selects = selector(target, query);
    const [version = String(this.store.version), after = ""] = decode(query.get("continue"));
    if (Number(version) < this.store.compacted)
      throw new Refused(410, "Expired", "The provided continue parameter is too old");
    const all = this.store.list(target.collection).filter(([key, object]) => key > after && selects(object));
    const limit = Number(query.get("limit") ?? 0) || all.length;
    const page = all.slice(0, limit);
    const last = page.at(-1)?.[0];
    const more = all.length > limit && last !== undefined;
    const builtIn = isBuiltIn(target.collection);
    return {
      kind: `${page[0]?.[1].kind ?? ""}List`,
      apiVersion: target.collection.replace(/\/[^/]+$/, ""),
      metadata: { resourceVersion: version, ...(more && { continue: encode([version, last]) }) },
      // As the real server: items of built-in kinds name neither.
      items: page.map(([, object]) => {
        const { apiVersion, kind, ...rest } = metadataOnly ? partial(object) : object;
        return builtIn ? rest : { apiVersion, kind, ...rest };
      }),
    };
  }

  #watch(target: Target, { query, metadataOnly }: Received, response: ServerResponse): void {
    const version = Number(query.get("resourceVersion") ?? 0);
    const bookmarks = query.get("allowWatchBookmarks") === "true";
    const watcher: Watcher = { target, selects: selector(target, query), response, bookmarks, metadataOnly };
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (version !== 0 && version < this.store.compacted) {
      const status = statusOf(new Refused(410, "Expired", `too old resource version: ${version}`));
      response.end(`${JSON.stringify({ type: "ERROR", object: status })}\n`);
      return;
    }
    if (version === 0) {
      for (const [, object] of this.store.list(target.collection)) send(watcher, "ADDED", object);
    } else
      for (const { type, collection, object } of this.store.since(version))
        if (collection === target.collection) send(watcher, type, object);
    this.#watchers.add(watcher);
    const seconds = Number(query.get("timeoutSeconds") ?? 0);
    const timer = seconds > 0 ? setTimeout(() => response.end(), seconds * 1000) : undefined;
    response.once("close", () => {
      clearTimeout(timer);
      this.#watchers.delete(watcher);
    });
  }

  #notify({ type, collection, object }: Change): void {
    for (const watcher of this.#watchers) if (watcher.target.collection === collection) send(watcher, type, object);
  }

  #bookmark({ response, target }: Watcher): void {
    const [, sample] = this.store.list(target.collection)[0] ?? [];
    const object = {
      kind: sample?.kind ?? "",
      apiVersion: sample?.apiVersion ?? "",
      metadata: { resourceVersion: String(this.store.version), creationTimestamp: null },
    };
    response.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  #create(target: Target, body: unknown, dry: boolean): Stored | Json {
    const { metadata, ...rest } = parsed(body);
    const { generateName, ...own } = isJson(metadata) ? metadata : {};
    const name = own.name ?? (typeof generateName === "string" ? `${generateName}${this.store.version}` : undefined);
    if (typeof name !== "string") throw new Refused(422, "Invalid", "metadata.name is required");
    const named = { ...target, name };
    if (this.store.get(target.collection, keyOf(named)) !== undefined)
      throw new Refused(409, "AlreadyExists", `${target.collection} "${name}" already exists`);
    const placed = { ...own, name, ...(target.namespace !== undefined && { namespace: target.namespace }) };
    if (dry) return { ...rest, metadata: placed };
    return this.store.put(target.collection, keyOf(named), { ...rest, metadata: placed });
  }

  #update(target: Target, body: unknown, dry: boolean): Stored | Json {
    const before = this.#existing(target);
    const object = parsed(body);
    this.#checkVersion(before, object);
    if (dry) return scoped(target, before, object);
    return this.store.put(target.collection, keyOf(target), scoped(target, before, object));
  }

  #patch(target: Target, contentType: string, query: URLSearchParams, body: unknown): { status: number; result: Json } {
    const patch = parsed(body);
    const key = keyOf(target);
    const before = this.store.get(target.collection, key);
    if (contentType.startsWith("application/apply-patch")) {
      const manager = query.get("fieldManager");
      if (manager === null) throw new Refused(400, "BadRequest", "fieldManager is required for apply patch");
      if (before === undefined && target.subresource !== undefined) this.#existing(target);
      const memo = `${target.collection}/${key}/${target.subresource ?? ""}/${manager}`;
      if (before === undefined) this.#applied.delete(memo);
      else this.#checkVersion(before, patch);
      const base = before ?? {
        metadata: { name: target.name, ...(target.namespace && { namespace: target.namespace }) },
      };
      const object = parsed(applied(base, this.#applied.get(memo), patch));
      const result = this.store.put(target.collection, key, scoped(target, before ?? {}, object));
      this.#applied.set(memo, patch);
      return { status: before === undefined ? 201 : 200, result };
    }
    if (!contentType.startsWith("application/merge-patch"))
      throw new Refused(415, "UnsupportedMediaType", `${contentType} is not supported`);
    const existing = this.#existing(target);
    this.#checkVersion(existing, patch);
    const object = parsed(mergePatch(existing, patch));
    return { status: 200, result: this.store.put(target.collection, key, scoped(target, existing, object)) };
  }

  #checkVersion(before: Stored, { metadata }: Json): void {
    const version = isJson(metadata) ? metadata.resourceVersion : undefined;
    if (version !== undefined && version !== before.metadata.resourceVersion)
      throw new Refused(
        409,
        "Conflict",
        "the object has been modified; please apply your changes to the latest version",
      );
  }

  #review(body: unknown): Json {
    const { spec } = parsed(body);
    const { token, audiences } = isJson(spec) ? spec : {};
    const known = typeof token === "string" ? this.tokens.get(token) : undefined;
    const asked = Array.isArray(audiences) ? audiences : [];
    const shared = known?.audiences.filter((audience) => asked.includes(audience)) ?? [];
    const status =
      known === undefined || shared.length === 0
        ? { authenticated: false, user: {}, error: "invalid bearer token" }
        : {
            authenticated: true,
            audiences: shared,
            user: { username: known.username, ...(known.extra !== undefined && { extra: known.extra }) },
          };
    return { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec, status };
  }
}

/** The name of a kind's collection in the store and in `missing`. */
export function collectionOf(kind: Kind): string {
  const { group, version, plural } = RESOURCES[kind];
  return `${group === "" ? "" : `${group}/`}${version}/${plural}`;
}

function isDry(query: URLSearchParams): boolean {
  return query.get("dryRun") === "All";
}

/** Kinds that are part of Kubernetes, not custom resources. */
function isBuiltIn(collection: string): boolean {
  return /^(v1|apps\/v1|discovery\.k8s\.io\/v1|coordination\.k8s\.io\/v1)\//.test(collection);
}

function targetOf(path: string): Target | undefined {
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const group = parts[0] === "api" ? parts.slice(1, 2) : parts[0] === "apis" ? parts.slice(1, 3) : undefined;
  if (group === undefined || group.length !== (parts[0] === "api" ? 1 : 2)) return undefined;
  let rest = parts.slice(1 + group.length);
  const namespace = rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status" ? rest[1] : undefined;
  if (namespace !== undefined) rest = rest.slice(2);
  const [plural, name, subresource] = rest;
  if (plural === undefined) return undefined;
  return { collection: [...group, plural].join("/"), namespace, name, subresource };
}

function keyOf({ namespace, name = "" }: Target): string {
  return objectKey({ ...(namespace !== undefined && { namespace }), name });
}

/** What a request may change: the status alone, or everything else. */
function scoped({ subresource }: Target, before: Json, { status, ...object }: Json): Json {
  if (subresource === "status") return { ...before, ...(status !== undefined && { status }) };
  return { ...object, ...(before.status !== undefined && { status: before.status }) };
}

function selector({ namespace }: Target, query: URLSearchParams): (object: Stored) => boolean {
  const terms = [
    ...termsOf(query.get("labelSelector"), ({ metadata }) => (isJson(metadata.labels) ? metadata.labels : {})),
    ...termsOf(query.get("fieldSelector"), (object) => ({
      "metadata.name": object.metadata.name,
      "metadata.namespace": object.metadata.namespace,
      type: object.type,
      "status.phase": isJson(object.status) ? object.status.phase : undefined,
    })),
  ];
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) && terms.every((term) => term(object));
}

/** `a=b`, `a!=b`, `a` and `!a`, separated by commas. */
function termsOf(text: string | null, fields: (object: Stored) => Json): ((object: Stored) => boolean)[] {
  return (text ?? "")
    .split(",")
    .filter((term) => term !== "")
    .map((term) => {
      const [, not = "", name = "", operator, value] = /^(!?)([^=!]+)(?:(!=|==?)(.*))?$/.exec(term) ?? [];
      return (object) => {
        const found = fields(object)[name];
        if (operator === undefined) return (found !== undefined) === (not === "");
        return (found === value) === (operator !== "!=");
      };
    });
}

/** As the server answers a client that wants metadata only. */
function partial({ metadata }: Stored): Stored {
  return { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata };
}

function send({ target, selects, response, metadataOnly }: Watcher, type: string, object: Stored): void {
  if (target.namespace !== undefined && object.metadata.namespace !== target.namespace) return;
  if (selects(object)) response.write(`${JSON.stringify({ type, object: metadataOnly ? partial(object) : object })}\n`);
}

function parsed(body: unknown): Json {
  if (!isJson(body)) throw new Refused(400, "BadRequest", "the body is not an object");
  return body;
}

function encode(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

function decode(text: string | null): readonly string[] {
  return text === null ? [] : (JSON.parse(Buffer.from(text, "base64url").toString()) as string[]);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function statusOf({ code, reason, message, objectName }: Refused): Json {
  const details = objectName === undefined ? {} : { name: objectName };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code };
}

/** The response to an upgrade that is rejected. */
function refuseUpgrade(socket: Duplex, error: unknown): void {
  const refused = error instanceof Refused ? error : new Refused(500, "InternalError", String(error));
  const body = JSON.stringify(statusOf(refused));
  socket.end(
    `HTTP/1.1 ${refused.code} ${refused.reason}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
}

function reply(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function fail(response: ServerResponse, error: unknown): void {
  const refused = error instanceof Refused ? error : new Refused(500, "InternalError", String(error));
  if (response.headersSent) response.destroy();
  else reply(response, refused.code, statusOf(refused));
}
