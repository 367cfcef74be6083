import { ERRORS, type ErrorCode } from "../base/errors.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Addresses } from "../net/addresses.ts";
import { severityOf } from "../trace/tracer.ts";
import type { CompiledBind } from "./compiled.ts";
import type { Services } from "./services.ts";

/** A request that the engine has answered with an error because it could not be read. */
interface Refusal {
  readonly code: ErrorCode;
  readonly detail: string;
  /** What has arrived of it; undefined when it is the rest of a body. */
  readonly received: Buffer | undefined;
}

/** Accounts for a request that never became an exchange: metrics, access log, and the trace of a waiting watcher. */
export function recordRefused(
  from: Addresses,
  { code, detail, received }: Refusal,
  { series }: Pick<CompiledBind, "series">,
  { metrics, accessLog, watchers }: Pick<Services, "metrics" | "accessLog" | "watchers">,
): void {
  const { status, message } = ERRORS[code];
  metrics.requests.count(series.get("unknown", status, "InvalidRequest"), 0, 0, 0);
  const source = formatHostPort(from.remoteAddress, from.remotePort);
  accessLog.info("refused", { "src.addr": source, "http.status": status, error: detail });
  const tracer = received && watchers.claimRefused(received, performance.now());
  if (tracer === undefined) return;
  const error = `${message}: ${detail}`;
  tracer.emit("info", { type: "requestStarted" });
  tracer.emit(severityOf(status, error), { type: "requestFinished", status, error });
  tracer.finish();
}
