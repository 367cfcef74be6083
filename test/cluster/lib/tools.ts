/** The cluster that the tests use, seen from a process that reaches its addresses. */
import { type SpawnOptions, spawn } from "node:child_process";
import { appRoot } from "../../../src/base/app-root.ts";

/** Where the controller is installed. */
export const CONTROLLER_NAMESPACE = "tracegate-system";

export interface Output {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end; `input` is its standard input. */
export async function run(
  command: string,
  args: readonly string[],
  { input, ...options }: SpawnOptions & { readonly input?: string } = {},
): Promise<Output> {
  const child = spawn(command, args, { ...options, stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  // A command that ends before it has read its input says why by itself.
  child.stdin?.on("error", () => {}).end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, stdout, stderr };
}

/** The same, but a failure rejects with what the command printed. */
export async function must(command: string, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, input === undefined ? {} : { input });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} exited with ${code}: ${stderr}${stdout}`);
  return stdout;
}

export function kubectl(...args: readonly string[]): Promise<string> {
  return must("kubectl", args);
}

/** Creates or changes the objects of a YAML text. */
export async function apply(yaml: string): Promise<void> {
  await must("kubectl", ["apply", "--server-side", "--force-conflicts", "-f", "-"], yaml);
}

export async function getJson<T>(...args: readonly string[]): Promise<T> {
  return JSON.parse(await kubectl("get", ...args, "-o", "json")) as T;
}

/** `tgctl` of this checkout. */
export function tgctl(...args: readonly string[]): Promise<Output> {
  return run(`${appRoot}bin/tgctl`, args);
}

/** Polls `check` until it returns something; what it throws last is part of the error after `seconds`. */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  seconds = 60,
  pauseMs = 200,
): Promise<T> {
  const deadline = Date.now() + seconds * 1000;
  let last: unknown;
  for (;;) {
    try {
      const found = await check();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`${what}: not within ${seconds} s`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

interface WithStatus {
  readonly status?: {
    readonly addresses?: readonly { readonly value: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** Resolves with the address of a Gateway once it is programmed. */
export function gatewayAddress(namespace: string, name: string, seconds = 90): Promise<string> {
  return eventually(
    `address of Gateway ${namespace}/${name}`,
    async () => {
      const { status } = await getJson<WithStatus>("-n", namespace, "gateway", name);
      const programmed = status?.conditions?.some((each) => each.type === "Programmed" && each.status === "True");
      return programmed === true ? status?.addresses?.[0]?.value : undefined;
    },
    seconds,
  );
}
