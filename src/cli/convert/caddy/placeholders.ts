/** Texts with placeholders of Caddy, as CEL. */

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  host: 'request.host.regexReplace(":[0-9]+$", "")',
  hostport: "request.host",
  uri: "request.pathAndQuery",
  path: "request.path",
  query: 'request.pathAndQuery.stripPrefix(request.path).stripPrefix("?")',
  method: "request.method",
  scheme: "request.scheme",
  remote_host: "source.address",
  remote: 'source.address + ":" + string(source.port)',
  client_ip: "source.address",
  uuid: 'default(request.headers["x-request-id"], "")',
};

const OLD_NAMES: Readonly<Record<string, string>> = {
  "http.request.host": "host",
  "http.request.hostport": "hostport",
  "http.request.uri": "uri",
  "http.request.uri.path": "path",
  "http.request.uri.query": "query",
  "http.request.method": "method",
  "http.request.scheme": "scheme",
  "http.request.remote.host": "remote_host",
  "http.request.remote": "remote",
};

const PLACEHOLDER = /\{(\$?[\w.:>/[\]-]+)\}/g;

export function hasPlaceholders(text: string): boolean {
  return text.search(PLACEHOLDER) >= 0;
}

/** CEL with the value of a text; undefined if a placeholder in it has no equivalent. */
export function celOf(text: string): string | undefined {
  const parts: string[] = [];
  let end = 0;
  for (const found of text.matchAll(PLACEHOLDER)) {
    if (found.index > end) parts.push(JSON.stringify(text.slice(end, found.index)));
    const value = celOfPlaceholder(found[1] ?? "");
    if (value === undefined) return undefined;
    parts.push(value);
    end = found.index + found[0].length;
  }
  if (end < text.length || parts.length === 0) parts.push(JSON.stringify(text.slice(end)));
  return parts.join(" + ");
}

function celOfPlaceholder(name: string): string | undefined {
  const short = OLD_NAMES[name] ?? name;
  if (Object.hasOwn(PLACEHOLDERS, short)) return PLACEHOLDERS[short];
  const [, header] = /^(?:http\.request\.)?header\.(.+)$/.exec(name) ?? [];
  if (header !== undefined) return `default(request.headers[${JSON.stringify(header.toLowerCase())}], "")`;
  const [, cookie] = /^(?:http\.request\.)?cookie\.(.+)$/.exec(name) ?? [];
  if (cookie !== undefined) return `default(request.headers.cookie(${JSON.stringify(cookie)}), "")`;
  return undefined;
}
