/** Handlers of Caddy that change or end a request, as policies. */
import type { Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { quoted } from "../paths.ts";
import { isJson } from "../patterns.ts";
import { type ErrorPage, textFor } from "./error-pages.ts";
import { headerPolicies, linesOf, removesPattern } from "./headers.ts";
import type { Directive } from "./parse.ts";
import { celOf, hasPlaceholders } from "./placeholders.ts";
import { forwardAuth } from "./proxy.ts";

const QUERY = "request.pathAndQuery.stripPrefix(request.path)";

/** Policies of a handler that passes the request on. `lost`: what it says cannot be said. Undefined: it is no such handler. */
export function layerOf(
  at: Directive,
  args: readonly string[],
  block: readonly Directive[],
  findings: Findings,
): Json | "lost" | undefined {
  switch (at.name) {
    case "header":
      return headerPolicies(linesOf(at, args, block), "response", findings);
    case "request_header":
      if (linesOf(at, args, block).some(([, field]) => removesPattern(field))) return "lost";
      return headerPolicies(linesOf(at, args, block), "request", findings);
    case "request_body": {
      const size = block.find(({ name }) => name === "max_size")?.args[0];
      return size === undefined ? {} : { maxRequestBodySize: size };
    }
    case "encode":
      return { compression: encodings(at, args, block, findings) };
    case "basicauth":
    case "basic_auth":
      return basicAuth(at, args, block, findings);
    case "forward_auth": {
      const policy = forwardAuth(at, args, block, findings);
      return policy === undefined ? "lost" : { extAuthz: policy };
    }
    case "rewrite":
      return rewritten(at, args.at(-1) ?? "", findings);
    case "uri":
      return changedUri(at, args, findings);
    default:
      return undefined;
  }
}

function encodings(at: Directive, args: readonly string[], block: readonly Directive[], findings: Findings): Json {
  const known = ["zstd", "br", "gzip"];
  const names = [...args, ...block.map(({ name }) => name)].filter((each) => known.includes(each));
  const size = block.find(({ name }) => name === "minimum_length")?.args[0];
  const match = block.find(({ name }) => name === "match");
  if (match !== undefined)
    findings.find("warning", match, "match of encode is left out", "set compression.contentTypes");
  if (names.length === 0) findings.find("note", at, "encode without formats uses zstd, br and gzip");
  return { encodings: names.length === 0 ? known : [...new Set(names)], minSize: Number(size ?? "512") };
}

function basicAuth(
  at: Directive,
  args: readonly string[],
  block: readonly Directive[],
  findings: Findings,
): Json | "lost" {
  const [algorithm = "bcrypt", realm] = args;
  const isBcrypt = (hash: string | undefined): boolean => /^\$2[aby]?\$/.test(hash ?? "");
  if (algorithm !== "bcrypt" || block.length === 0 || block.some(({ args: [hash] }) => !isBcrypt(hash))) {
    findings.find(
      "error",
      at,
      "only hashes by bcrypt are converted",
      "write basicAuth.htpasswd with hashes by htpasswd -B",
    );
    return "lost";
  }
  const htpasswd = block.map(({ name, args: [hash] }) => `${name}:${hash}\n`).join("");
  return { basicAuth: { mode: "strict", realm: realm ?? "restricted", htpasswd } };
}

/** Sets the path and, if the text has one, the query. */
function rewritten(at: Directive, to: string, findings: Findings): Json | "lost" {
  const cel = to.includes("?{query}") ? celOf(to.replace("?{query}", "")) : celOf(to);
  if (cel === undefined || to === "") {
    findings.find("error", at, `rewrite ${to} is left out`, "set :path by CEL in transformations");
    return {};
  }
  const hasQuery = to.includes("?") || to.includes("{uri}");
  return pathSet(to.includes("?{query}") || !hasQuery ? `${cel} + ${QUERY}` : cel);
}

function changedUri(at: Directive, [action = "", what = "", by = ""]: readonly string[], findings: Findings): Json {
  const isPlain = ![what, by].some(hasPlaceholders);
  if (action === "strip_prefix" && isPlain) return pathSet(`${strippedPrefix(what)} + ${QUERY}`);
  if (action === "strip_suffix" && isPlain)
    return pathSet(`request.path.regexReplace(${JSON.stringify(`${quoted(what)}$`)}, "") + ${QUERY}`);
  if (action === "path_regexp" && isPlain)
    return pathSet(`request.path.regexReplace(${JSON.stringify(what)}, ${JSON.stringify(by)}) + ${QUERY}`);
  if (action === "replace" && isPlain)
    return pathSet(`request.pathAndQuery.regexReplace(${JSON.stringify(quoted(what))}, ${JSON.stringify(by)})`);
  findings.find("error", at, `uri ${action} ${what} is left out`, "set :path by CEL in transformations");
  return {};
}

/** CEL of the path without a prefix; the root stays. */
export function strippedPrefix(prefix: string): string {
  const bare = prefix.replace(/\/$/, "");
  return `request.path.regexReplace(${JSON.stringify(`^${quoted(bare)}/?`)}, "/")`;
}

function pathSet(cel: string): Json {
  return { transformations: { request: { set: { ":path": cel } } } };
}

/** Policies that end a request; undefined: the handler is another one. */
export function responseOf(
  at: Directive,
  args: readonly string[],
  block: readonly Directive[],
  pages: readonly ErrorPage[],
  findings: Findings,
): Json | undefined {
  switch (at.name) {
    case "abort":
      findings.find("warning", at, "the connection is not closed: clients get 403");
      return { directResponse: { status: 403 } };
    case "error": {
      const status = args.map(Number).find((each) => each >= 400 && each <= 599) ?? 500;
      const body = textFor(status, pages);
      return { directResponse: { status, ...(body !== undefined && { body, headers: contentType(body) }) } };
    }
    case "respond":
      return respond(at, args, block, findings);
    case "redir":
      return redirect(at, args, findings);
    default:
      return undefined;
  }
}

function respond(at: Directive, args: readonly string[], block: readonly Directive[], findings: Findings): Json {
  const [first = "", second] = args;
  const isStatus = second === undefined && /^\d{3}$/.test(first);
  const status = Number(isStatus ? first : (second ?? "200"));
  const text = isStatus ? block.find(({ name }) => name === "body")?.args[0] : first;
  const allowed = status >= 200 && status <= 599 ? status : 500;
  if (text === undefined || text === "") return { directResponse: { status: allowed } };
  const headers = contentType(text);
  if (!hasPlaceholders(text)) return { directResponse: { status: allowed, body: text, headers } };
  const cel = celOf(text);
  if (cel === undefined)
    findings.find("error", at, "the text of the response is left out", "write bodyExpression in CEL");
  return { directResponse: { status: allowed, ...(cel !== undefined && { bodyExpression: cel }), headers } };
}

/** That which Caddy chooses. */
function contentType(text: string): Json {
  return { "content-type": JSON.stringify(isJson(text) ? "application/json" : "text/plain; charset=utf-8") };
}

const CODES: Readonly<Record<string, number>> = { permanent: 301, temporary: 302 };

function redirect(at: Directive, [to = "", code = "302"]: readonly string[], findings: Findings): Json {
  const written = CODES[code] ?? Number(code);
  const status = [301, 302, 303, 307, 308].includes(written) ? written : 302;
  if (status !== written) findings.find("warning", at, `redir ${code} becomes 302`);
  const [, scheme, host] = /^(https?|\{scheme\}):\/\/(\{host\}|[\w.-]+)\{uri\}$/.exec(to) ?? [];
  if (scheme !== undefined && host !== undefined)
    return {
      requestRedirect: {
        ...(scheme !== "{scheme}" && { scheme }),
        ...(host !== "{host}" && { authority: { full: host } }),
        status,
      },
    };
  const cel = celOf(to);
  if (cel !== undefined) return { directResponse: { status, headers: { location: cel } } };
  findings.find(
    "error",
    at,
    `a redirect to ${to} has no equivalent: requests get 501`,
    "compute location in directResponse.headers",
  );
  return { directResponse: { status: 501 } };
}
