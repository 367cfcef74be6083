import { spawn } from "node:child_process";
import type { Context } from "../runner/context.ts";

/** Programs that open an address in the browser of the user, started without a shell. */
const OPENERS: Partial<Readonly<Record<NodeJS.Platform, readonly [program: string, ...words: string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Resolves with whether the program that opens the browser has started. It does not tell whether a browser appears. */
export function openBrowser(url: string, env: Context["env"]): Promise<boolean> {
  const [program, ...words] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...words, url], { stdio: "ignore", detached: true, env });
  child.unref();
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(true));
    child.once("error", () => resolve(false));
  });
}
