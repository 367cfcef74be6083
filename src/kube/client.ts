import { fieldsOf, jsonOf } from "../base/fields.ts";
import type { ResourceName } from "./resources.ts";

/** The API server, as an authenticated user. Paths are those of the Kubernetes API, such as `/api/v1/namespaces`. */
export interface KubeClient {
  /** Resolves with the parsed response body. @throws KubeError */
  request<T>(method: Method, path: string, options?: RequestOptions): Promise<T>;
  /**
   * Opens a watch (`watch=true` is added) and yields its events until the server ends it or `signal` aborts.
   * @throws KubeError if it cannot be opened, also with 410 Gone
   */
  watch<T>(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    accept?: string,
  ): AsyncIterable<WatchEvent<T>>;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Default `application/json`; patches name their kind: `application/apply-patch+yaml`, `application/merge-patch+json`. */
  readonly contentType?: string;
  /** The media type of the response; default `application/json`. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

export interface WatchEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: T;
}

/** What RBAC checks about a request, and what a Role must therefore allow. */
export interface ResourceAccess {
  readonly verb: string;
  /** With its subresource, such as `pods/portforward`. */
  readonly resource: string;
  readonly namespace?: string;
}

interface KubeErrorOptions extends ErrorOptions {
  readonly objectName?: string | undefined;
  readonly access?: ResourceAccess | undefined;
}

/** The API server rejected a request, or could not be reached (`status` 0). */
export class KubeError extends Error {
  readonly status: number;
  /** `reason` of the Status object, such as `NotFound` or `Conflict`; empty without one. */
  readonly reason: string;
  /** Of the object that the failure is about, as the Status object says; undefined if it is about none, such as an unknown type. */
  readonly objectName: string | undefined;
  /** What was requested; undefined if it was no resource, or nothing responded. */
  readonly access: ResourceAccess | undefined;

  constructor(status: number, reason: string, message: string, options: KubeErrorOptions = {}) {
    super(message, options);
    this.status = status;
    this.reason = reason;
    this.objectName = options.objectName;
    this.access = options.access;
  }
}

/** The kubelet could not connect to a port that is forwarded, or lost the connection; the message is its own. */
export class PodConnectionError extends Error {
  /** Nothing listens on the port of the pod. The error channel carries a text only, in which the kubelet quotes the system. */
  get refused(): boolean {
    return this.message.includes("connect: connection refused");
  }
}

/**
 * The error of a response with `status`, whose body is a Status object, or the text of something in front of the API server.
 * `path`: with its query.
 */
export function kubeError(status: number, body: string, method: Method, path: string): KubeError {
  // If it is not JSON, the text is the message.
  return statusError(
    jsonOf(body),
    status,
    body.trim() || `${method} ${path}: status ${status}`,
    accessOf(method, path),
  );
}

/** The error that a Status object describes, whose message is `text` if it has none. */
export function statusError(object: unknown, status: number, text: string, access?: ResourceAccess): KubeError {
  const { reason, message, details } = fieldsOf(object);
  const { name } = fieldsOf(details);
  return new KubeError(status, typeof reason === "string" ? reason : "", typeof message === "string" ? message : text, {
    objectName: typeof name === "string" ? name : undefined,
    access,
  });
}

/** What `resourcePath` makes, with a query. */
const RESOURCE_PATH =
  /^\/(?:api|apis\/[^/?]+)\/[^/?]+(?:\/namespaces\/(?<namespace>[^/?]+))?\/(?<plural>[^/?]+)(?:\/(?<name>[^/?]+)(?<subresource>\/[^?]+)?)?(?:\?(?<query>.*))?$/;

const VERBS = { POST: "create", PUT: "update", PATCH: "patch" } as const;

/** The verb as Kubernetes derives it from a request (Authorization Overview, "Determine the request verb"). */
function accessOf(method: Method, path: string): ResourceAccess | undefined {
  const groups = RESOURCE_PATH.exec(path)?.groups;
  if (groups === undefined) return undefined;
  const { namespace, plural = "", name, subresource = "", query } = groups;
  const read = name !== undefined ? "get" : new URLSearchParams(query).has("watch") ? "watch" : "list";
  const removal = name === undefined ? "deletecollection" : "delete";
  const verb = method === "GET" ? read : method === "DELETE" ? removal : VERBS[method];
  const within = namespace === undefined ? {} : { namespace: decodeURIComponent(namespace) };
  return { verb, resource: plural + subresource, ...within };
}

/** The path of a collection, of an object with `name`, or of its subresource. */
export function resourcePath(
  { group, version, plural, namespaced }: ResourceName,
  namespace?: string,
  name?: string,
  subresource?: string,
): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  const object = name === undefined ? "" : `/${encodeURIComponent(name)}`;
  return `${root}${scope}/${plural}${object}${subresource === undefined ? "" : `/${subresource}`}`;
}

/**
 * The objects of a kind, of all namespaces if `namespace` is undefined. They come without kind, but with name and namespace.
 * @throws KubeError
 */
export async function listObjects<T>(
  client: Pick<KubeClient, "request">,
  resource: ResourceName,
  namespace: string | undefined,
  signal: AbortSignal,
  labelSelector?: string,
): Promise<readonly T[]> {
  const query = labelSelector === undefined ? {} : { labelSelector };
  const path = resourcePath(resource, namespace);
  return (await client.request<{ readonly items: readonly T[] }>("GET", path, { query, signal })).items;
}
