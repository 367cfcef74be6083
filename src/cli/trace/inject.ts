import { spawn } from "node:child_process";
import { newTraceToken, TRACE_TOKEN_HEADER } from "../../trace/token.ts";
import { CliError, describe, usage } from "../runner/errors.ts";

/** A request that the client sends itself, to trace it. */
interface InjectedRequest {
  /** Binds the trace to this request: it shows no other request, and no other watcher can claim this one. */
  readonly token: string;
  /** `host:port` of the URLs. */
  readonly targets: readonly string[];
  readonly args: readonly string[];
}

/** Options of curl whose value may be a URL without being a request URL. */
const TAKES_VALUE =
  /^(?:-[AbdeFHx]|--(?:user-agent|cookie|data|data-(?:raw|binary|ascii|urlencode)|json|referer|form|form-string|header|proxy|preproxy|doh-url|variable))$/;

/** Reads what follows `--`: curl arguments with at least one http or https URL. Throws usage errors. */
export function injectedRequest(args: readonly string[]): InjectedRequest {
  const urls = args.filter((arg, index) => /^https?:\/\//i.test(arg) && !TAKES_VALUE.test(args[index - 1] ?? ""));
  if (urls.length === 0) throw usage("request args after -- must include at least one http:// or https:// URL");
  const parsed = urls.map((url) => {
    if (!URL.canParse(url)) throw usage(`the request URL ${url} is not valid`);
    return new URL(url);
  });
  const hosts = new Set(parsed.map((url) => url.hostname));
  if (hosts.size > 1) throw usage(`all request URLs must have the same host, found ${[...hosts].join(" and ")}`);
  const targets = new Set(parsed.map((url) => `${url.hostname}:${url.port || (url.protocol === "https:" ? 443 : 80)}`));
  return { token: newTraceToken(), targets: [...targets], args };
}

/** Arguments for curl before the user's own: the URLs' host only becomes `Host` and SNI, the connection goes to the port. */
export function connectTo({ targets }: InjectedRequest, port: number): string[] {
  return targets.flatMap((target) => ["--connect-to", `${target}:127.0.0.1:${port}`]);
}

/** Characters of curl's output that are kept: the status. */
const STATUS_LENGTH = 3;

/**
 * Sends the request to this port of 127.0.0.1 with the system's curl and resolves with the status of the response, such as `431`, if there is one.
 * Rejects with a `CliError` when curl is missing or fails; its own message is part of it.
 */
export function sendRequest(request: InjectedRequest, port: number, signal: AbortSignal): Promise<string> {
  // With a proxy of the environment (http_proxy), the request would not reach the gateway.
  const fixed = ["--silent", "--show-error", "--output", "/dev/null", "--noproxy", "*"];
  const status = ["--write-out", "%{http_code}"];
  const token = ["--header", `${TRACE_TOKEN_HEADER}: ${request.token}`];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const curl = spawn("curl", [...fixed, ...status, ...token, ...connectTo(request, port), ...request.args], {
    stdio: ["inherit", "pipe", "pipe"],
    signal,
  });
  let stdout = "";
  let stderr = "";
  curl.stdout.setEncoding("latin1").on("data", (text: string) => {
    stdout = (stdout + text).slice(-STATUS_LENGTH);
  });
  curl.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  curl.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") return reject(failed(describe(error)));
    reject(failed("curl was not found on PATH", "install curl, or leave out the URL and send the request yourself"));
  });
  curl.once("close", (code, killedBy) => {
    if (code === 0) resolve(stdout);
    else reject(failed(stderr.trim() || `curl ended with ${code === null ? killedBy : `exit code ${code}`}`));
  });
  return promise;
}

function failed(why: string, hint?: string): CliError {
  return new CliError("failure", `failed to execute traced request: ${why}`, hint === undefined ? {} : { hint });
}
