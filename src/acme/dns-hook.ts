/**
 * Who writes the TXT records of dns-01. Programs and servers are called as the widespread hooks of lego are (`exec` and `httpreq`), so
 * those that exist can be used: `PROGRAM present|cleanup NAME VALUE`, and a POST to `URL/present` and `URL/cleanup`.
 */
import { execFile } from "node:child_process";
import { messageOf } from "../base/errors.ts";
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
    const options = { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT, signal };
    execFile(program, [...first, ...rest], options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else {
        const how =
          error.killed === true ? `did not end within ${TIMEOUT_MS / 1000} s` : `ended with ${String(error.code)}`;
        const said = stderr.trim().slice(0, SHOWN);
        reject(new Error(`the DNS hook ${program} ${how}${said === "" ? "" : `: ${said}`}`));
      }
    });
  });
}
