import { parseTarget, type TargetParts } from "../../http/h1/target.ts";
import { type ConfigPath, PolicyError } from "../policy-error.ts";

/** Whether a text is `host[:port]`. */
export function isAuthority(text: string): boolean {
  return parseTarget("GET", "/", text, 1, emptyParts()) === undefined;
}

/** Throws a PolicyError about what stands at `path` unless `authority` is `host[:port]`. */
export function checkAuthority(path: ConfigPath, authority: string): void {
  if (!isAuthority(authority)) throw PolicyError.at(path, `${JSON.stringify(authority)} is not host[:port]`);
}

/** Takes `/path[?query]` apart. Throws a PolicyError about what stands at `path` when it could not stand in a request. */
export function parsePathAndQuery(path: ConfigPath, text: string): TargetParts {
  if (!text.startsWith("/")) throw PolicyError.at(path, `${JSON.stringify(text)} must begin with "/"`);
  const parts = emptyParts();
  const error = parseTarget("GET", text, "host", 1, parts);
  if (error !== undefined)
    throw PolicyError.at(path, `${JSON.stringify(text)}: ${error.detail}; percent-encode what a URL cannot hold`);
  return parts;
}

function emptyParts(): TargetParts {
  return { authority: "", path: "", search: "", scheme: "http" };
}
