/** What of a request an expression reads; requests of every protocol engine have it. Headers are flat, names lower-case. */
export interface HttpRequestParts {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly search: string;
  readonly version: string;
  readonly headers: readonly string[];
}

/**
 * The values of an expression's variables. `request` must be a RequestVariable, the others plain objects whose fields are
 * those of EXCHANGE_VARIABLES, with integers as bigint. An absent one fails the expressions that read it.
 */
export interface RequestView {
  readonly request: RequestVariable;
  readonly response?: { readonly code: bigint; readonly headers: ReadonlyMap<string, string> };
  readonly source?: Readonly<Record<string, unknown>>;
  readonly destination?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, unknown>>;
  readonly backend?: Readonly<Record<string, unknown>>;
  readonly proxy?: Readonly<Record<string, unknown>>;
}

const NO_REQUEST: HttpRequestParts = {
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

  reset(parts: HttpRequestParts): void {
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
  get startTime(): Date {
    this.#startTime ??= new Date();
    return this.#startTime;
  }
}

/** A view of requests alone, made once and reset for each. */
export class HttpRequestView implements RequestView {
  readonly request = new RequestVariable();

  /** Looks at another request from now on; what was read of the one before is forgotten. */
  reset(parts: HttpRequestParts): this {
    this.request.reset(parts);
    return this;
  }
}

/** Repeated fields are joined (RFC 9110 5.3; cookies RFC 9113 8.2.3); `host` is the authority, which lists do not carry. */
function joinHeaders({ authority, headers }: HttpRequestParts): ReadonlyMap<string, string> {
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
