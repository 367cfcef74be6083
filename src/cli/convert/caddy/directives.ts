/** Directives of Caddy: their order, and what becomes of those that are not converted. */
import type { Directive } from "./parse.ts";

/** The order in which Caddy runs the directives of a block, whatever their order in the file. */
const ORDER = [
  ...["tracing", "map", "vars", "fs", "root", "log_append", "skip_log", "log_skip", "log_name", "header"],
  ...["copy_response_headers", "request_body", "redir", "method", "rewrite", "uri", "try_files", "basicauth"],
  ...["basic_auth", "forward_auth", "request_header", "encode", "push", "intercept", "templates", "invoke", "handle"],
  ...["route", "abort", "error", "copy_response", "respond", "metrics", "reverse_proxy"],
  ...["php_fastcgi", "file_server", "acme_server"],
];

/** Whether it is one of Caddy's own directives, whose order an option can change. */
export function isOrdered(name: string): boolean {
  return ORDER.includes(name);
}

/** Settings of a site that are no handlers. */
export const SETTINGS = ["tls", "bind", "log", "handle_errors"];

const FILES = "the gateway serves no files: keep a file server behind it, and name it in backends";

/** Handlers whose requests get 501, and what to do instead. */
export const UNSERVED: Readonly<Record<string, string>> = {
  file_server: FILES,
  php_fastcgi: "put a server that speaks HTTP before the application",
  acme_server: "keep a certificate authority behind the gateway",
  metrics: "the gateway's metrics are on its stats server",
  copy_response: "write the response into directResponse",
};

/** Directives whose loss admits no request that was kept out. Any other may do so. */
export const OPEN: Readonly<Record<string, string>> = {
  map: "write the choice in CEL where it is used",
  vars: "write the value in CEL where it is used",
  method: "set :method by transformations.request",
  push: "browsers no longer take pushed responses",
  intercept: "use errorPages",
  templates: "let the backend render pages",
  copy_response_headers: "set header fields by transformations.response",
  tracing: "set frontendPolicies.tracing",
  log_append: "choose fields in frontendPolicies.accessLog",
  try_files: FILES,
};

/** Those that can be left out without loss. */
export const IDLE: Readonly<Record<string, string>> = {
  root: "it is about files",
  fs: "it is about files",
  skip_log: "frontendPolicies.accessLog chooses what is logged",
  log_skip: "frontendPolicies.accessLog chooses what is logged",
  log_name: "frontendPolicies.accessLog chooses what is logged",
};

/** By Caddy's order; directives of one name with the longest path first. Caddy sorts `handle_path` as `handle`: both are alternatives. */
export function inOrder(directives: readonly Directive[], named: ReadonlyMap<string, Directive>): readonly Directive[] {
  const sortName = ({ name }: Directive): string => (name === "handle_path" ? "handle" : name);
  // What is not known may be a plugin that keeps requests out, so it comes first.
  const rank = (each: Directive): number => ORDER.indexOf(sortName(each));
  const weight = (each: Directive): readonly [length: number, isExact: boolean, hasMatcher: boolean] => {
    const [first = ""] = each.args;
    const definition = named.get(first);
    const [kind, path, ...others] = definition?.args ?? [];
    const single = first.startsWith("/") ? first : kind === "path" && others.length === 0 ? path : onlyPath(definition);
    return [single?.replace(/\*$/, "").length ?? 0, single?.endsWith("*") === false, /^[@/]/.test(first)];
  };
  return directives.toSorted((a, b) => {
    if (rank(a) !== rank(b)) return rank(a) - rank(b);
    // These add up in the order of the file.
    if (sortName(a) !== sortName(b) || a.name === "vars") return 0;
    const [x, y] = [weight(a), weight(b)];
    return y[0] - x[0] || Number(y[1]) - Number(x[1]) || Number(y[2]) - Number(x[2]);
  });
}

/** The path of a matcher that has one path and nothing else. */
function onlyPath(definition: Directive | undefined): string | undefined {
  const [first, ...others] = definition?.block ?? [];
  return first?.name === "path" && first.args.length === 1 && others.length === 0 ? first.args[0] : undefined;
}
