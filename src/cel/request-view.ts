import type { Activation, RequestParts } from "./activation.ts";

/** A request as it arrived. */
export type HttpRequestParts = Pick<
  RequestParts,
  "method" | "scheme" | "authority" | "path" | "search" | "version" | "headers"
>;

const NO_REQUEST: HttpRequestParts = {
  method: "",
  scheme: "",
  authority: "",
  path: "",
  search: "",
  version: "",
  headers: [],
};

/** An activation of the request alone, made once and reset for each. */
export class HttpRequestView implements Activation, RequestParts {
  #parts = NO_REQUEST;
  #startTime: Date | undefined;

  /** Looks at another request from now on. */
  reset(parts: HttpRequestParts): this {
    this.#parts = parts;
    this.#startTime = undefined;
    return this;
  }

  get request(): RequestParts {
    return this;
  }
  get method(): string {
    return this.#parts.method;
  }
  get scheme(): string {
    return this.#parts.scheme;
  }
  get authority(): string {
    return this.#parts.authority;
  }
  get path(): string {
    return this.#parts.path;
  }
  get search(): string {
    return this.#parts.search;
  }
  get version(): string {
    return this.#parts.version;
  }
  get headers(): readonly string[] {
    return this.#parts.headers;
  }
  /** When the view was first asked since its reset, which is the request's arrival for a trace. */
  get startTime(): Date {
    this.#startTime ??= new Date();
    return this.#startTime;
  }
}
