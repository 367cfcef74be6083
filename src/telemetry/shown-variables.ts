import { type Activation, overlaid, type RequestParts, type ResponseParts, type SourceParts } from "../cel/index.ts";
import type { RequestSecrets } from "../trace/secrets.ts";

/**
 * The variables whose values telemetry records: access log, exported records, spans, labels of metrics. An expression sees `<redacted>` in
 * place of a secret, however it reads it: by a computed name, through a view of the headers, from a claim. So values derived from a secret
 * are derived from `<redacted>`. Filters only decide, and read the real values.
 */
export class ShownVariables implements Activation {
  readonly #variables: Activation;
  readonly #secrets: RequestSecrets;
  #request: RequestParts | undefined;
  #response: ResponseParts | undefined;

  /** For a request, or a connection, that is over. */
  constructor(variables: Activation, secrets: RequestSecrets) {
    this.#variables = variables;
    this.#secrets = secrets;
    const { request, response } = variables;
    if (request !== undefined) secrets.remember(request.headers);
    if (response !== undefined) secrets.remember(response.headers);
  }

  /** The value of an expression over these variables as JSON data, without secrets that a policy has copied elsewhere. */
  redact(value: unknown): unknown {
    return this.#secrets.data(value);
  }

  /** A header field that is recorded without an expression. */
  field(name: string, value: string): string {
    return this.#secrets.fields([name, value])[1] ?? value;
  }

  get budget(): Activation["budget"] {
    return this.#variables.budget;
  }
  get request(): RequestParts | undefined {
    const { request } = this.#variables;
    if (request !== undefined) this.#request ??= new ShownRequest(request, this.#secrets);
    return this.#request;
  }
  get response(): ResponseParts | undefined {
    const { response } = this.#variables;
    if (response !== undefined) this.#response ??= new ShownResponse(response, this.#secrets);
    return this.#response;
  }
  get source(): SourceParts | undefined {
    const { source } = this.#variables;
    const connect = source?.connectHeaders;
    if (source === undefined || connect === undefined) return source;
    const shown = { authority: connect.authority, headers: this.#secrets.fields(connect.headers) };
    return overlaid(source, { connectHeaders: shown });
  }
  get destination(): Activation["destination"] {
    return this.#variables.destination;
  }
  get proxy(): unknown {
    return this.#variables.proxy;
  }
  get env(): unknown {
    return this.#variables.env;
  }
  get backend(): unknown {
    return this.#variables.backend;
  }
  get jwt(): unknown {
    return this.#secrets.named(this.#variables.jwt);
  }
  get apiKey(): unknown {
    return this.#secrets.named(this.#variables.apiKey);
  }
  get basicAuth(): unknown {
    return this.#secrets.named(this.#variables.basicAuth);
  }
  get extauthz(): unknown {
    return this.#secrets.named(this.#variables.extauthz);
  }
  get extproc(): unknown {
    return this.#secrets.named(this.#variables.extproc);
  }
  get metadata(): unknown {
    return this.#secrets.named(this.#variables.metadata);
  }
}

class ShownRequest implements RequestParts {
  readonly #request: RequestParts;
  readonly #secrets: RequestSecrets;
  #headers: readonly string[] | undefined;

  constructor(request: RequestParts, secrets: RequestSecrets) {
    this.#request = request;
    this.#secrets = secrets;
  }
  get method(): string {
    return this.#request.method;
  }
  get scheme(): string {
    return this.#request.scheme;
  }
  get authority(): string {
    return this.#request.authority;
  }
  get path(): string {
    return this.#secrets.target(this.#request.path);
  }
  get search(): string {
    return this.#secrets.target(this.#request.search);
  }
  get version(): string {
    return this.#request.version;
  }
  get headers(): readonly string[] {
    this.#headers ??= this.#secrets.fields(this.#request.headers);
    return this.#headers;
  }
  get sensitive(): RequestParts["sensitive"] {
    return this.#request.sensitive;
  }
  get body(): Uint8Array | undefined {
    return this.#request.body;
  }
  get bodyPrefix(): Uint8Array | undefined {
    return this.#request.bodyPrefix;
  }
  get startTime(): Date | undefined {
    return this.#request.startTime;
  }
  get endTime(): Date | undefined {
    return this.#request.endTime;
  }
}

class ShownResponse implements ResponseParts {
  readonly #response: ResponseParts;
  readonly #secrets: RequestSecrets;
  #headers: readonly string[] | undefined;

  constructor(response: ResponseParts, secrets: RequestSecrets) {
    this.#response = response;
    this.#secrets = secrets;
  }
  get status(): number {
    return this.#response.status;
  }
  get headers(): readonly string[] {
    this.#headers ??= this.#secrets.fields(this.#response.headers);
    return this.#headers;
  }
  get sensitive(): ResponseParts["sensitive"] {
    return this.#response.sensitive;
  }
  get body(): Uint8Array | undefined {
    return this.#response.body;
  }
  get bodyPrefix(): Uint8Array | undefined {
    return this.#response.bodyPrefix;
  }
  get grpcStatus(): number | undefined {
    return this.#response.grpcStatus;
  }
}
