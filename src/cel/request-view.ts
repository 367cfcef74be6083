/** The request alone, as filters of traces read it. */
import type { Activation, RequestParts } from "./environment/activation.ts";

/** A request as it arrived. */
type HttpRequestParts = Pick<
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

  /** Switches to another request. */
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
  /** Time of the first access since the reset, which a trace uses as the request's arrival. */
  get startTime(): Date {
    this.#startTime ??= new Date();
    return this.#startTime;
  }
}
