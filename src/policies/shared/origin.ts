/** A web origin taken apart (RFC 6454 3): lower-case, the port a number even where it is the scheme's default. */
export interface Origin {
  readonly scheme: string;
  readonly host: string;
  readonly port: number | undefined;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };
const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/(\[[0-9a-f:.]+\]|[^\s/?#@:[\]\\]+)(?::(\d{1,5}))?$/;

/** Takes `scheme://host[:port]` apart; undefined when it is none, such as `null`. The host may hold `*`. */
export function parseOrigin(text: string): Origin | undefined {
  const match = ORIGIN.exec(text.toLowerCase());
  const [, scheme = "", host = "", port] = match ?? [];
  if (match === null) return undefined;
  return { scheme, host, port: port === undefined ? DEFAULT_PORTS[scheme] : Number(port) };
}

/**
 * A canonical text for an origin; the text itself when it is not an origin. The dot that may end a host's name is dropped, as
 * it is from Host.
 */
export function normalOrigin(text: string): string {
  const origin = parseOrigin(text);
  if (origin === undefined) return text;
  const { scheme, host, port } = origin;
  return `${scheme}://${host.replace(/(?<=[^.])\.$/, "")}:${port ?? ""}`;
}
