import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { parse } from "yaml";
import { answerOf, localAdmin } from "../admin.ts";
import type { Context } from "../context.ts";
import { CliError, describe } from "../errors.ts";

/** What dumps hold. */
const SECTIONS = new Set(["binds", "listeners", "routes", "backends", "services", "workloads", "policies", "config"]);

/** The configuration dump of a file (JSON or YAML, `-` is standard input), or of the local proxy when none is given. */
export async function loadDump(
  file: string | undefined,
  adminPort: number | undefined,
  context: Context,
): Promise<unknown> {
  if (file === undefined) {
    const { signal } = context;
    return answerOf(
      localAdmin(adminPort, context.env).configDump({ signal }),
      (status, body) => new CliError("failure", `unexpected status code: ${status}`, { why: body }),
    );
  }
  const name = file === "-" ? "standard input" : file;
  try {
    const content = file === "-" ? await text(context.stdin) : await readFile(file, "utf8");
    const dump: unknown = parseDump(content);
    if (isDump(dump)) return dump;
  } catch (error) {
    throw new CliError("failure", `failed to read config dump file ${name}: ${describe(error)}`, { cause: error });
  }
  throw new CliError("failure", `failed to read config dump file ${name}: it holds no configuration dump`, {
    hint: `save one with: tgctl proxy config all -o json > dump.json`,
  });
}

/** An object with something of a dump in it, whichever version wrote it; or an empty one. */
function isDump(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 0 || keys.some((key) => SECTIONS.has(key));
}

/** JSON is YAML too, but a hundred times faster to read as JSON, which is what proxies write. */
function parseDump(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    if (content.trimStart().startsWith("{")) throw error;
  }
  try {
    return parse(content, { logLevel: "silent" });
  } catch {
    // What a parser of YAML says about a text that was never meant for it would not help.
    return undefined;
  }
}
