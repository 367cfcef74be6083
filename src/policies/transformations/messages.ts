import { BODILESS, type HeaderList, type HttpResponse } from "../../http/message/message.ts";
import { isToken } from "../../http/message/syntax.ts";
import type { MessageBody, PolicyContext } from "../contract/types.ts";
import { checkAuthority, parsePathAndQuery } from "../shared/url-change.ts";

/** A request or response as a transformation or a processing service edits it. */
export interface EditedMessage {
  readonly headers: HeaderList;
  readonly body: Pick<MessageBody, "buffer" | "replace">;
  /** Pseudo-header fields, and `host` of requests. Throws an Error if the value is not valid there. */
  setPseudo(name: string, value: string): void;
}

/** Names that change the request's target instead of a field (RFC 9113, section 8.3.1). */
export const REQUEST_PSEUDO: ReadonlySet<string> = new Set([":method", ":path", ":authority", ":scheme", "host"]);
/** RFC 9113, section 8.3.2. */
export const RESPONSE_PSEUDO: ReadonlySet<string> = new Set([":status"]);

/**
 * Methods whose responses are framed differently (RFC 9112, section 6.3). If a GET became a HEAD, the client would wait for a
 * body that never comes, or take the next response for it.
 */
const FRAMED_OTHERWISE = new Set(["HEAD", "CONNECT", "TRACE"]);

/** What editing needs of a request: a client's, or a callout's. */
interface RequestUnderWay extends Pick<PolicyContext, "request" | "authorityMode"> {
  readonly requestBody: EditedMessage["body"];
}

/** Edits a request in place; a changed authority is kept when the backend is chosen. */
export class EditedRequest implements EditedMessage {
  readonly #context: RequestUnderWay;

  constructor(context: RequestUnderWay) {
    this.#context = context;
  }
  get headers(): HeaderList {
    return this.#context.request.headers;
  }
  get body(): EditedMessage["body"] {
    return this.#context.requestBody;
  }

  setPseudo(name: string, value: string): void {
    const { request } = this.#context;
    switch (name) {
      case ":method":
        if (!isToken(value)) throw new Error(`${JSON.stringify(value)} is not a method`);
        if (value !== request.method && (FRAMED_OTHERWISE.has(value) || FRAMED_OTHERWISE.has(request.method)))
          throw new Error(`a ${request.method} cannot become a ${value}`);
        request.method = value;
        return;
      case ":path": {
        const { path, search } = parsePathAndQuery([name], value);
        request.path = path;
        request.search = search;
        return;
      }
      case ":scheme":
        if (value !== "http" && value !== "https") throw new Error(`${JSON.stringify(value)} is not http or https`);
        request.scheme = value;
        return;
      default:
        checkAuthority([name], value);
        request.authority = value;
        this.#context.authorityMode = "fixed";
    }
  }
}

/** Edits a response in place. The body of one that cannot have any reads as empty and cannot be replaced. */
export class EditedResponse implements EditedMessage {
  readonly #context: PolicyContext;
  readonly #response: HttpResponse;

  constructor(context: PolicyContext, response: HttpResponse) {
    this.#context = context;
    this.#response = response;
  }
  get headers(): HeaderList {
    return this.#response.headers;
  }
  get body(): Pick<MessageBody, "buffer" | "replace"> {
    return BODILESS.has(this.#response.status) ? NO_BODY : this.#context.responseBody;
  }

  setPseudo(_name: string, value: string): void {
    const status = Number(value);
    if (!/^[2-5]\d\d$/.test(value)) throw new Error(`${JSON.stringify(value)} is not a status from 200 to 599`);
    if (status !== this.#response.status && (BODILESS.has(status) || BODILESS.has(this.#response.status)))
      throw new Error(`a response with status ${this.#response.status} cannot become one with ${status}`);
    this.#response.status = status;
  }
}

const NO_BODY: Pick<MessageBody, "buffer" | "replace"> = { buffer: async () => new Uint8Array(0), replace() {} };
