import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import { type Origin, parseOrigin } from "../shared/origin.ts";

/** Whether a request's `Origin` is allowed. */
type OriginTest = (origin: string) => boolean;

/**
 * Compiles `allowOrigins`. `null` is the opaque origin of sandboxed frames and local files, allowed only if it is listed, since any
 * page can obtain it. Throws PolicyError at `path` for anything that is not an origin.
 */
export function compileOrigins(path: ConfigPath, allowed: readonly string[]): OriginTest {
  if (allowed.includes("*")) return () => true;
  const opaque = allowed.includes("null");
  const patterns = allowed.filter((text) => text !== "null").map((text) => compilePattern(path, text));
  return (text) => {
    if (text === "null") return opaque;
    const origin = parseOrigin(text);
    return origin !== undefined && patterns.some((matches) => matches(origin));
  };
}

function compilePattern(path: ConfigPath, text: string): (origin: Origin) => boolean {
  const pattern = parseOrigin(text);
  if (pattern === undefined)
    throw PolicyError.at(
      path,
      `${JSON.stringify(text)} is not an origin; write scheme://host[:port], such as https://*.example.com, or "*"`,
    );
  const { scheme, port } = pattern;
  const matchesHost = compileHost(pattern.host);
  return (origin) => origin.scheme === scheme && origin.port === port && matchesHost(origin.host);
}

/**
 * `*` matches any characters, including none. Pieces are searched from left to right in linear time: a pattern cannot backtrack,
 * whatever host a client sends.
 */
function compileHost(pattern: string): (host: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (host) => host === pattern;
  return (host) => {
    if (!host.startsWith(first) || !host.endsWith(last)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = host.indexOf(piece, at);
      if (found === -1) return false;
      at = found + piece.length;
    }
    return at <= host.length - last.length;
  };
}
