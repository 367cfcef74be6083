import { parseTarget, type TargetParts } from "../../http/h1/target.ts";

/** Throws an error that begins with `where` unless `authority` is `host[:port]`. */
export function checkAuthority(where: string, authority: string): void {
  if (parseTarget("GET", "/", authority, 1, emptyParts()) !== undefined)
    throw new Error(`${where}: ${JSON.stringify(authority)} is not host[:port]`);
}

/** Takes `/path[?query]` apart. Throws an error that begins with `where` when it could not stand in a request. */
export function parsePathAndQuery(where: string, text: string): TargetParts {
  if (!text.startsWith("/")) throw new Error(`${where}: ${JSON.stringify(text)} must begin with "/"`);
  const parts = emptyParts();
  const error = parseTarget("GET", text, "host", 1, parts);
  if (error !== undefined)
    throw new Error(`${where}: ${JSON.stringify(text)}: ${error.detail}; percent-encode what a URL cannot hold`);
  return parts;
}

function emptyParts(): TargetParts {
  return { authority: "", path: "", search: "", scheme: "http" };
}
