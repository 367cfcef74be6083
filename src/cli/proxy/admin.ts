import { type AdminAddress, AdminClient, AdminClientError } from "../../admin/client/client.ts";
import type { Context } from "../runner/context.ts";
import { CliError, usage } from "../runner/errors.ts";
import { type TraceRecord, toRecord } from "../trace/source.ts";

const DEFAULT_PORT = 15000;

/** A proxy, on this machine or in a pod, as commands see it. */
export interface ProxyAdmin {
  /** `http://localhost:15000`, or `<pod>.<namespace>`. */
  readonly name: string;
  /** Where it runs; undefined for the proxy at the local admin address. */
  readonly pod: { readonly name: string; readonly namespace: string } | undefined;
  readonly client: AdminClient;
  /** The port of 127.0.0.1 that leads to this port of the proxy. */
  reach(port: number): Promise<number>;
  /** Why the admin address could not be reached, and what the user can do. */
  unreachable(error: AdminClientError): CliError;
  /** Why a request to `reach(port)` failed, if that is known. */
  failureAt(port: number): Promise<CliError | undefined>;
}

/**
 * The proxy at a port of this machine when one is given, else at the address in `TGCTL_ADMIN`, else at port 15000 of this
 * machine. Throws a usage error for an invalid address.
 */
export function localProxy(port: number | undefined, env: Context["env"]): ProxyAdmin {
  const address = env.TGCTL_ADMIN ?? "";
  const client = new AdminClient(
    port === undefined && address !== "" ? parseAdmin(address) : `http://localhost:${port ?? DEFAULT_PORT}`,
  );
  return {
    name: client.address,
    pod: undefined,
    client,
    async reach(listener) {
      if (/^unix:|^http:\/\/(?:localhost|127\.[\d.]+|\[::1\]):/.test(client.address)) return listener;
      throw usage(
        `a request URL needs a proxy on this machine, but TGCTL_ADMIN is ${address}`,
        "send the request yourself; without a URL the next request is traced",
      );
    },
    unreachable(error) {
      return new CliError("unreachable", error.message, {
        hint: "start a proxy with `tracegate -f gateway.yaml`, or give its admin port (config.adminAddr) with --proxy-admin-port or TGCTL_ADMIN; --kubeconfig <file> chooses a cluster",
        cause: error,
      });
    },
    failureAt: async () => undefined,
  };
}

/** `unix:/path`, `host:port` or `http://host:port`. */
function parseAdmin(text: string): AdminAddress {
  const [, path] = /^unix:(\/.+)$/.exec(text) ?? [];
  if (path !== undefined) return { unix: path };
  const [, host, port] = /^(?:http:\/\/)?([\w.-]+|\[[\da-fA-F:.]+\]):(\d{1,5})\/?$/.exec(text) ?? [];
  if (host === undefined || !URL.canParse(`http://${host}:${port}`) || Number(port) === 0) {
    throw usage(
      `TGCTL_ADMIN is not an admin address: "${text}"`,
      "TGCTL_ADMIN=localhost:15000, or TGCTL_ADMIN=unix:/path",
    );
  }
  return `http://${host}:${port}`;
}

/**
 * The result of a call to the proxy's admin server; failures become a `CliError`. `statusError` makes the error for a response
 * with another status than 200.
 */
export async function adminResult<T>(
  proxy: Pick<ProxyAdmin, "unreachable">,
  call: Promise<T>,
  statusError: (status: number, body: string) => CliError = unexpectedStatus,
): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof AdminClientError)) throw CliError.from(error);
    if (error.kind === "status") throw withHint(statusError(error.status ?? 0, error.body ?? ""), error.status);
    throw error.kind === "unreachable" || error.kind === "timeout" ? proxy.unreachable(error) : CliError.from(error);
  }
}

function unexpectedStatus(status: number, body: string): CliError {
  return new CliError("failure", `unexpected status code: ${status}`, { why: body });
}

/** The error for a query that the admin server rejects (400), or that its version does not know (404: `missing`). */
export function queryError(status: number, body: string, missing: string): CliError {
  if (status === 400) return usage(body.trimEnd());
  return status === 404 ? new CliError("failure", missing) : unexpectedStatus(status, body);
}

/** Resolves with the events of the next request once the proxy is ready to trace it. */
export async function openTrace(
  proxy: ProxyAdmin,
  request: {
    readonly expression: string | undefined;
    readonly route?: string | undefined;
    readonly token: string | undefined;
    readonly reveal: boolean;
    readonly duration: string | undefined;
    /** Default: the gateway's. */
    readonly bodies?: string | undefined;
    readonly signal: AbortSignal;
  },
): Promise<AsyncGenerator<TraceRecord>> {
  const stream = proxy.client.trace(request);
  await adminResult(
    proxy,
    stream.opened,
    (status, body) =>
      new CliError("failure", `trace stream returned ${status}: ${body}`, hintFor(status, request.reveal)),
  );
  return records(stream);
}

async function* records(stream: AsyncIterable<{ readonly raw: string }>): AsyncGenerator<TraceRecord> {
  let any = false;
  for await (const { raw } of stream) {
    any = true;
    yield toRecord(raw);
  }
  if (!any) {
    throw new CliError("failure", "the trace stream ended before any event", {
      why: "the proxy is shutting down, or dropped the watcher",
    });
  }
}

/** The most likely mistake behind a rejected trace. */
function hintFor(status: number, reveal: boolean): { hint?: string } {
  if (status === 403 && reveal) return { hint: "trace without --reveal" };
  return status === 400 ? { hint: "correct the CEL text of --expression" } : {};
}

/** An admin server has all paths that this client uses, so a 404 comes from a listener or another program. */
function withHint(error: CliError, status: number | undefined): CliError {
  if (status !== 404) return error;
  return new CliError(error.kind, error.message, {
    ...(error.why !== undefined && { why: error.why }),
    hint: "this address is not an admin server; give its port (config.adminAddr) with --proxy-admin-port or TGCTL_ADMIN",
  });
}
