import type { Activation, RequestParts } from "./activation.ts";

const NO_REQUEST: RequestParts = {
  method: "",
  scheme: "",
  authority: "",
  path: "",
  search: "",
  version: "",
  headers: [],
};

/** The variable `request`: getters compute a field only when an expression reads it. */
export class RequestVariable {
  #parts = NO_REQUEST;
  #headers: ReadonlyMap<string, string> | undefined;
  #startTime: Date | undefined;

  reset(parts: RequestParts): void {
    this.#parts = parts;
    this.#headers = undefined;
    this.#startTime = undefined;
  }

  get method(): string {
    return this.#parts.method;
  }
  get uri(): string {
    const { scheme, authority, path, search } = this.#parts;
    return `${scheme}://${authority}${path}${search}`;
  }
  get host(): string {
    return this.#parts.authority;
  }
  get scheme(): string {
    return this.#parts.scheme;
  }
  get path(): string {
    return this.#parts.path;
  }
  get pathAndQuery(): string {
    return this.#parts.path + this.#parts.search;
  }
  get version(): string {
    return this.#parts.version;
  }
  get headers(): ReadonlyMap<string, string> {
    this.#headers ??= joinHeaders(this.#parts);
    return this.#headers;
  }
  /** When the view was first asked since its reset, which is the request's arrival for a trace. */
  get body(): Uint8Array | undefined {
    return this.#parts.body;
  }
  get bodyPrefix(): Uint8Array | undefined {
    return this.#parts.bodyPrefix ?? this.#parts.body;
  }
  get endTime(): Date | undefined {
    return this.#parts.endTime;
  }
  get startTime(): Date {
    this.#startTime ??= this.#parts.startTime ?? new Date();
    return this.#startTime;
  }
}

/** A view of requests alone, made once and reset for each. */
export class HttpRequestView implements Activation {
  #request: RequestParts = NO_REQUEST;

  get request(): RequestParts {
    return this.#request;
  }

  /** Looks at another request from now on. */
  reset(parts: HttpRequestParts): this {
    this.#request = parts;
    return this;
  }
}

/** A request without the times and bodies that an activation may have. */
export type HttpRequestParts = Pick<
  RequestParts,
  "method" | "scheme" | "authority" | "path" | "search" | "version" | "headers"
>;

/** Repeated fields are joined (RFC 9110 5.3; cookies RFC 9113 8.2.3); `host` is the authority, which lists do not carry. */
export function joinHeaders({
  authority,
  headers,
}: Pick<RequestParts, "authority" | "headers">): ReadonlyMap<string, string> {
  const joined = new Map<string, string>([["host", authority]]);
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = decodeUtf8(headers[i + 1] as string);
    const before = joined.get(name);
    joined.set(name, before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`);
  }
  return joined;
}

/** Header text is latin1, one character a byte, while expressions are Unicode. */
function decodeUtf8(latin1: string): string {
  return /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, "latin1").toString("utf8") : latin1;
}
