/** A web origin (RFC 6454, section 4): lower-case, with the port as a number even if it is the scheme's default. */
export interface Origin {
  readonly scheme: string;
  readonly host: string;
  readonly port: number | undefined;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };
const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/(\[[0-9a-f:.]+\]|[^\s/?#@:[\]\\]+)(?::(\d{1,5}))?$/;

/**
 * Parses `scheme://host[:port]`; undefined for anything else, such as `null`, the origin of sandboxed documents and of files.
 * The host may contain `*`, for patterns of the configuration.
 */
export function parseOrigin(text: string): Origin | undefined {
  const match = ORIGIN.exec(text.toLowerCase());
  const [, scheme = "", host = "", port] = match ?? [];
  if (match === null) return undefined;
  return { scheme, host, port: port === undefined ? DEFAULT_PORTS[scheme] : Number(port) };
}

/**
 * Canonical form for comparisons; text that is not an origin is returned unchanged. The trailing dot of a host name is dropped,
 * as it is from Host: `shop.example.` and `shop.example` are the same server.
 */
export function normalOrigin(text: string): string {
  const origin = parseOrigin(text);
  if (origin === undefined) return text;
  const { scheme, host, port } = origin;
  return `${scheme}://${host.replace(/(?<=[^.])\.$/, "")}:${port ?? ""}`;
}
