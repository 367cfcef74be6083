import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { messageOf } from "../../base/errors.ts";
import { JSON_TYPE } from "../plane/answers.ts";

/** Why an admin request has no response to return. */
type AdminFailure =
  /** No connection; `message` has the address. */
  | "unreachable"
  /** The server responded with a status other than 200; see `status` and `body`. */
  | "status"
  /** The response is not what the interface promises, or is truncated. */
  | "protocol"
  | "timeout"
  /** The caller's signal. */
  | "aborted";

/** The one error of the admin client. */
export class AdminClientError extends Error {
  readonly kind: AdminFailure;
  /** HTTP status of the response, for kind `status`. */
  readonly status: number | undefined;
  /** Body of the response without its final line feed, for kind `status`. */
  readonly body: string | undefined;

  constructor(kind: AdminFailure, message: string, more: { status?: number; body?: string; cause?: unknown } = {}) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.status = more.status;
    this.body = more.body;
  }
}

/** Where the admin server is: its base URL, or the path of its unix socket. */
export type AdminAddress = string | { readonly unix: string };

export interface AdminRequest {
  readonly method: "GET" | "POST";
  /** With query. */
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the response head must have arrived. */
  readonly timeout: number;
}

const STALL_TIMEOUT = 30_000;
const MAX_ANSWER = 256 * 1024 * 1024;
const MAX_ERROR_TEXT = 64 * 1024;

/**
 * Sends one request on its own connection and returns the response if its status is 200.
 * @throws AdminClientError
 */
export function openAdminRequest(address: AdminAddress, options: AdminRequest): Promise<IncomingMessage> {
  const shown = describeAddress(address);
  return new Promise((resolve, reject) => {
    if (options.signal?.aborted) {
      reject(aborted());
      return;
    }
    const request = createRequest(address, options);
    const timer = setTimeout(() => {
      const seconds = options.timeout / 1000;
      request.destroy(new AdminClientError("timeout", `admin server at ${shown} did not respond within ${seconds} s`));
    }, options.timeout);
    const stop = (): void => {
      request.destroy(aborted());
    };
    options.signal?.addEventListener("abort", stop, { once: true });
    request.once("close", () => options.signal?.removeEventListener("abort", stop));
    request.once("error", (error) => {
      clearTimeout(timer);
      reject(error instanceof AdminClientError ? error : unreachable(shown, error));
    });
    request.once("response", (response) => {
      clearTimeout(timer);
      // Until a reader listens, an unhandled error event would end the process; readers see the failure as `aborted`.
      response.on("error", () => undefined);
      if (response.statusCode === 200) resolve(response);
      else statusError(response, options, shown).then(reject, reject);
    });
    request.end(options.body);
  });
}

/** Reads a whole response. @throws AdminClientError if it is truncated, stalls for 30 s or exceeds 256 MiB */
export async function readAnswer(response: IncomingMessage, signal?: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  response.setTimeout(STALL_TIMEOUT, () => {
    response.destroy(new AdminClientError("timeout", `the response made no progress for ${STALL_TIMEOUT / 1000} s`));
  });
  try {
    for await (const chunk of response) {
      if (!Buffer.isBuffer(chunk)) continue;
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_ANSWER) throw new AdminClientError("protocol", `the response is longer than ${MAX_ANSWER} bytes`);
    }
  } catch (error) {
    throw readError(error, signal);
  }
  return Buffer.concat(chunks);
}

/** Sends a request and reads the whole response. @throws AdminClientError */
export async function adminText(address: AdminAddress, request: AdminRequest): Promise<string> {
  return (await readAnswer(await openAdminRequest(address, request), request.signal)).toString("utf8");
}

/** The same of a response in JSON. @throws AdminClientError */
export async function adminJson(address: AdminAddress, request: AdminRequest): Promise<unknown> {
  const text = await adminText(address, { ...request, headers: { ...request.headers, accept: JSON_TYPE } });
  try {
    return JSON.parse(text);
  } catch (error) {
    const shown = describeAddress(address);
    throw new AdminClientError("protocol", `${shown} returned something other than JSON for ${request.path}`, {
      cause: error,
    });
  }
}

/** `path` with the query, if there is one. */
export function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Classifies a failure while reading a response. */
export function readError(error: unknown, signal?: AbortSignal): AdminClientError {
  if (error instanceof AdminClientError) return error;
  if (signal?.aborted) return aborted();
  return new AdminClientError("protocol", `the admin server broke off its response: ${messageOf(error)}`, {
    cause: error,
  });
}

/** The address as a user would write it. */
export function describeAddress(address: AdminAddress): string {
  return typeof address === "string" ? address : `unix:${address.unix}`;
}

function createRequest(address: AdminAddress, { method, path, headers: more }: AdminRequest): ClientRequest {
  const headers = { ...more, connection: "close" };
  const common = { method, agent: false, headers } as const;
  if (typeof address !== "string")
    return httpRequest({
      ...common,
      socketPath: address.unix,
      path,
      setHost: false,
      headers: { ...headers, host: "localhost" },
    });
  const base = URL.parse(address);
  if (base === null || base.protocol !== "http:")
    throw new AdminClientError("unreachable", `"${address}" is not an admin address; expected http://<host>:<port>`);
  return httpRequest(new URL(base.pathname.replace(/\/$/, "") + path, base), common);
}

async function statusError(
  response: IncomingMessage,
  { path }: AdminRequest,
  shown: string,
): Promise<AdminClientError> {
  const status = response.statusCode ?? 0;
  let body = "";
  response.setEncoding("utf8");
  for await (const chunk of response) if (body.length < MAX_ERROR_TEXT) body += chunk;
  body = body.trimEnd();
  return new AdminClientError("status", `admin server at ${shown} returned ${status} for ${path}: ${body}`, {
    status,
    body,
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused; is a gateway running with its admin server there?",
  ENOENT: "no such socket; is a gateway running with its admin server there?",
  EACCES: "permission denied",
  ENOTFOUND: "no such host",
  ECONNRESET: "the connection was closed without a response; does something else listen there?",
};

function unreachable(shown: string, error: Error): AdminClientError {
  const code = "code" in error ? String(error.code) : "";
  const reason = REASONS[code] ?? messageOf(error);
  return new AdminClientError("unreachable", `no admin server reached at ${shown}: ${reason}`, { cause: error });
}

function aborted(): AdminClientError {
  return new AdminClientError("aborted", "the request was cancelled");
}
