import { type ConfigPath, PolicyError } from "../policy-error.ts";
import { type Origin, parseOrigin } from "../shared/origin.ts";

/** Whether a request's `Origin` is allowed. */
export type OriginTest = (origin: string) => boolean;

/** Compiles `allowOrigins`. Throws a PolicyError about what stands at `path` for what is no origin. */
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

/** `*` stands for any characters, none included. Pieces are searched from left to right, so nothing can backtrack. */
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
