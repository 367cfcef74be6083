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

/** The API server rejected a request, or could not be reached (`status` 0). */
export class KubeError extends Error {
  readonly status: number;
  /** `reason` of the Status object, such as `NotFound` or `Conflict`; empty without one. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.reason = reason;
  }
}

/**
 * The error of a response with `status`, whose body is a Status object, or the text of something in front of the API server.
 * `request`: method and path, the message for responses without a text.
 */
export function kubeError(status: number, body: string, request: string): KubeError {
  let reason = "";
  let message = body.trim();
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === "object" && parsed !== null) {
      if ("reason" in parsed && typeof parsed.reason === "string") reason = parsed.reason;
      if ("message" in parsed && typeof parsed.message === "string") message = parsed.message;
    }
  } catch {
    // Not JSON: the text is the message.
  }
  return new KubeError(status, reason, message === "" ? `${request}: status ${status}` : message);
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
