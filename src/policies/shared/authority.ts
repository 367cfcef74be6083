/** The host of an authority with its case kept (`Example.com:80` → `Example.com`, `[::1]:80` → `[::1]`). */
export function hostPart(authority: string): string {
  return authority.slice(0, portColon(authority));
}

/** The port of an authority, undefined when it has none. */
export function portPart(authority: string): number | undefined {
  const colon = portColon(authority);
  return colon === authority.length ? undefined : Number(authority.slice(colon + 1));
}

/** `host`, or `host:port` unless `port` is absent or the default of `scheme`. */
export function withPort(host: string, port: number | undefined, scheme: "http" | "https"): string {
  return port === undefined || port === (scheme === "https" ? 443 : 80) ? host : `${host}:${port}`;
}

function portColon(authority: string): number {
  const colon = authority.lastIndexOf(":");
  return colon > authority.lastIndexOf("]") ? colon : authority.length;
}
