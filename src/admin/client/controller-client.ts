import { fieldsOf } from "../../base/fields.ts";
import {
  type AdminAddress,
  AdminClientError,
  type AdminRequest,
  adminJson,
  adminText,
  openAdminRequest,
  readAnswer,
  withQuery,
} from "./client-request.ts";

const TIMEOUT = 10_000;
const HEAP_TIMEOUT = 30_000;
/** It translates a whole Gateway. */
const PREVIEW_TIMEOUT = 60_000;

/** What the controller says about changed objects. */
export interface PreviewReport {
  /** Conditions of the objects that would not be met. */
  readonly problems: readonly PreviewProblem[];
  /** What they refer to and the controller has not read, because nothing in the cluster refers to it yet. */
  readonly missing: readonly { readonly kind: string; readonly key: string }[];
}

export interface PreviewProblem {
  readonly kind: string;
  /** `<namespace>/<name>` */
  readonly key: string;
  readonly condition: string;
  readonly reason: string;
  readonly message: string;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * The admin interface of one replica of the controller (docs/tgctl.md#tgctl-controller). Every method throws `AdminClientError`.
 */
export class ControllerClient {
  readonly #address: AdminAddress;

  constructor(address: AdminAddress) {
    this.#address = address;
  }

  /** The text `current log levels:`, `---` and a line `<component>: <level>` for each component. */
  logging(options: CallOptions = {}): Promise<string> {
    return this.setLogging(new Map(), options);
  }

  /** Sets the level of components by name, of all under the name `level`; returns the server's text about it. */
  setLogging(levels: ReadonlyMap<string, string>, { signal }: CallOptions = {}): Promise<string> {
    const path = withQuery("/logging", new URLSearchParams([...levels]));
    return adminText(this.#address, { method: "POST", path, timeout: TIMEOUT, signal });
  }

  /** What `/snapshots/<name>` has: `objects`, `gateways` or `proxies`. */
  snapshot(name: string, { signal }: CallOptions = {}): Promise<unknown> {
    return adminJson(this.#address, { method: "GET", path: `/snapshots/${name}`, timeout: HEAP_TIMEOUT, signal });
  }

  /** Has the controller keep what these objects would make of a Gateway (`<namespace>/<name>`), for its proxies. */
  async preview(
    id: string,
    gateway: string,
    objects: readonly unknown[],
    { signal }: CallOptions = {},
  ): Promise<PreviewReport> {
    const path = withQuery(`/previews/${id}`, new URLSearchParams({ gateway }));
    const request = { method: "POST", path, body: JSON.stringify(objects), timeout: PREVIEW_TIMEOUT, signal } as const;
    const report = await adminJson(this.#address, request);
    if (isReport(report)) return report;
    throw new AdminClientError("protocol", "the controller returned something other than a report about a preview");
  }

  /** A gzipped pprof CPU profile; takes `seconds` (1–300) to answer. */
  cpuProfile(seconds: number, { signal }: CallOptions = {}): Promise<Uint8Array> {
    const path = `/debug/pprof/profile?seconds=${seconds}`;
    return this.#bytes({ method: "GET", path, timeout: seconds * 1000 + TIMEOUT, signal });
  }

  /** A gzipped pprof heap profile. */
  heapProfile({ signal }: CallOptions = {}): Promise<Uint8Array> {
    return this.#bytes({ method: "GET", path: "/debug/pprof/heap", timeout: HEAP_TIMEOUT, signal });
  }

  async #bytes(request: AdminRequest): Promise<Uint8Array> {
    return readAnswer(await openAdminRequest(this.#address, request), request.signal);
  }
}

function isReport(value: unknown): value is PreviewReport {
  const { problems, missing } = fieldsOf(value);
  return Array.isArray(problems) && Array.isArray(missing);
}
