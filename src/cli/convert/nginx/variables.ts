/** Texts with variables of nginx, as CEL. */

/** What a text depends on besides the request. */
export interface TextScope {
  /** The regular expression whose groups `$1` to `$9` are; undefined: there are none. */
  readonly groups?: string;
  readonly serverName: string;
}

/** Variables with one equivalent. */
const VARIABLES: Readonly<Record<string, string>> = {
  host: 'request.host.lowerAscii().regexReplace(":[0-9]+$", "")',
  http_host: "request.host",
  request_uri: "request.pathAndQuery",
  uri: "request.path",
  document_uri: "request.path",
  args: 'request.pathAndQuery.stripPrefix(request.path).stripPrefix("?")',
  query_string: 'request.pathAndQuery.stripPrefix(request.path).stripPrefix("?")',
  is_args: '(request.pathAndQuery == request.path ? "" : "?")',
  scheme: "request.scheme",
  request_method: "request.method",
  remote_addr: "source.address",
  binary_remote_addr: "source.address",
  remote_port: "string(source.port)",
  server_port: "string(destination.port)",
  remote_user: 'default(basicAuth.username, "")',
  request_id: 'default(request.headers["x-request-id"], "")',
  ssl_client_s_dn: 'default(source.subject, "")',
  ssl_client_i_dn: 'default(source.issuer, "")',
  ssl_server_name: 'default(destination.hostname, "")',
};

/** The names of the variables in a text, in order. */
export function variablesIn(text: string): readonly string[] {
  return [...text.matchAll(/\$(?:\{(\w+)\}|(\w+))/g)].map(([, braced, plain]) => braced ?? plain ?? "");
}

/** CEL with the value of a text; undefined if a variable in it has no equivalent. */
export function celOf(text: string, scope: TextScope): string | undefined {
  const parts: string[] = [];
  let end = 0;
  for (const found of text.matchAll(/\$(?:\{(\w+)\}|(\w+))/g)) {
    if (found.index > end) parts.push(JSON.stringify(text.slice(end, found.index)));
    const value = celOfVariable(found[1] ?? found[2] ?? "", scope);
    if (value === undefined) return undefined;
    parts.push(value);
    end = found.index + found[0].length;
  }
  if (end < text.length || parts.length === 0) parts.push(JSON.stringify(text.slice(end)));
  return parts.join(" + ");
}

function celOfVariable(name: string, { groups, serverName }: TextScope): string | undefined {
  if (/^[1-9]$/.test(name))
    return groups === undefined ? undefined : `request.path.regexReplace(${JSON.stringify(whole(groups))}, "$${name}")`;
  if (name === "server_name") return JSON.stringify(serverName);
  if (Object.hasOwn(VARIABLES, name)) return VARIABLES[name];
  if (name.startsWith("http_"))
    return `default(request.headers[${JSON.stringify(name.slice("http_".length).replaceAll("_", "-"))}], "")`;
  if (name.startsWith("cookie_")) return `default(request.headers.cookie(${JSON.stringify(name.slice(7))}), "")`;
  return undefined;
}

/** The pattern that matches a whole text in which `pattern` occurs; groups keep their numbers. */
export function whole(pattern: string): string {
  return `^.*?(?:${pattern}).*$`;
}
