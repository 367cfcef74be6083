import { type AdminAddress, AdminClient, AdminClientError } from "../admin/client.ts";
import type { Context } from "./context.ts";
import { CliError, usage } from "./errors.ts";
import { type TraceRecord, toRecord } from "./trace/source.ts";

const DEFAULT_PORT = 15000;

/**
 * The admin server that a command talks to: a port of this machine when one is given, else the address in `TGCTL_ADMIN`,
 * else port 15000 of this machine. Throws a usage error for an invalid address.
 */
export function localAdmin(port: number | undefined, env: Context["env"]): AdminClient {
  const address = env.TGCTL_ADMIN ?? "";
  return new AdminClient(
    port === undefined && address !== "" ? parseAdmin(address) : `http://localhost:${port ?? DEFAULT_PORT}`,
  );
}

/** Whether a listener beside that admin server can be reached at 127.0.0.1. */
export function isOnThisMachine(client: AdminClient): boolean {
  return /^unix:|^http:\/\/(?:localhost|127\.[\d.]+|\[::1\]):/.test(client.address);
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
 * The result of an admin call; failures become a `CliError`. `statusError` makes the error for a response with another status
 * than 200.
 */
export async function adminResult<T>(
  call: Promise<T>,
  statusError: (status: number, body: string) => CliError,
): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw asCliError(error, statusError);
  }
}

/** Resolves with the events of the next request once the proxy is ready to trace it. */
export async function openTrace(
  client: AdminClient,
  request: {
    readonly expression: string | undefined;
    readonly token: string | undefined;
    readonly reveal: boolean;
    readonly signal: AbortSignal;
  },
): Promise<AsyncGenerator<TraceRecord>> {
  const stream = client.trace(request);
  await adminResult(
    stream.opened,
    (status, body) => new CliError("failure", `trace stream returned ${status}: ${body}`, hintFor(status)),
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
function hintFor(status: number): { hint?: string } {
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

function asCliError(error: unknown, statusError: (status: number, body: string) => CliError): CliError {
  if (!(error instanceof AdminClientError)) return CliError.from(error);
  if (error.kind === "status") return withHint(statusError(error.status ?? 0, error.body ?? ""), error.status);
  if (error.kind !== "unreachable" && error.kind !== "timeout") return CliError.from(error);
  return new CliError("unreachable", error.message, {
    hint: "start a proxy with `tracegate -f gateway.yaml`, or give its admin port (config.adminAddr) with --proxy-admin-port or TGCTL_ADMIN",
    cause: error,
  });
}
