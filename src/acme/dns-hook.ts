/**
 * Who writes the TXT records of dns-01. Programs and servers are called as the widespread hooks of lego are (`exec` and `httpreq`), so
 * those that exist can be used: `PROGRAM present|cleanup NAME VALUE`, and a POST to `URL/present` and `URL/cleanup`.
 */
import { spawn } from "node:child_process";
import { addAbortListener } from "node:events";
import { codeOf, messageOf } from "../base/errors.ts";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import { endedBy } from "./ended-by.ts";
import type { DnsHook } from "./settings.ts";

/** DNS providers may take long. */
const TIMEOUT_MS = 2 * 60_000;
const MAX_OUTPUT = 64 * 1024;
/** Of what a failed hook printed, so much is shown. */
const SHOWN = 500;

/** A TXT record; `name` ends with a dot. */
interface TxtRecord {
  readonly name: string;
  readonly value: string;
}

/** Rejects with an Error that says how the hook has failed; also when `signal` is aborted, which ends the program or the call. */
export async function callHook(
  hook: DnsHook,
  action: "present" | "cleanup",
  { name, value }: TxtRecord,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<void> {
  if ("command" in hook) return run(hook.command, [action, name, value], signal);
  const { url, authorization, root } = hook;
  const at = `${url.replace(/\/$/, "")}/${action}`;
  const headers = [
    "content-type",
    "application/json",
    ...(authorization === undefined ? [] : ["authorization", authorization]),
  ];
  const body = Buffer.from(JSON.stringify({ fqdn: name, value }));
  let status: number;
  try {
    const request = {
      method: "POST",
      headers,
      body,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_OUTPUT,
      ...(root !== undefined && { root }),
    } as const;
    ({ status } = await endedBy(signal, fetch)(at, request));
  } catch (error) {
    throw new Error(`the DNS hook failed: ${messageOf(error)}`, { cause: error });
  }
  if (status < 200 || status >= 300) throw new Error(`the DNS hook responds to ${action} with status ${status}`);
}

/** Without a shell: nothing in a name or value is interpreted. */
function run([program = "", ...first]: readonly string[], rest: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (how: string): void => {
      const said = printed.trim().slice(0, SHOWN);
      reject(new Error(`the DNS hook ${program} ${how}${said === "" ? "" : `: ${said}`}`));
    };
    let printed = "";
    // A process group of its own, so that what a script has started ends with it: a `sleep` in it would hold up a shutdown.
    const child = spawn(program, [...first, ...rest], { detached: true, stdio: ["ignore", "ignore", "pipe"] });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (printed.length < SHOWN) printed += text;
    });
    const end = (how: string): void => {
      settle();
      if (child.pid !== undefined) killGroup(child.pid);
      child.stderr.destroy();
      child.unref();
      fail(how);
    };
    const timer = setTimeout(() => end(`did not end within ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS).unref();
    const listener = addAbortListener(signal, () => end("was ended with the order"));
    const settle = (): void => {
      clearTimeout(timer);
      listener[Symbol.dispose]();
    };
    child.once("error", (error) => {
      settle();
      fail(`ended with ${codeOf(error)}`);
    });
    child.once("close", (code, killedBy) => {
      settle();
      if (code === 0) resolve();
      else fail(`ended with ${code ?? killedBy}`);
    });
  });
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGTERM");
  } catch (error) {
    // It has ended by itself.
    if (codeOf(error) !== "ESRCH") throw error;
  }
}
