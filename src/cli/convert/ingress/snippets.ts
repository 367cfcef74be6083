/** Snippets: directives of nginx in an annotation. */
import type { Json } from "../converted.ts";
import { Findings, SyntaxProblem } from "../findings.ts";
import { whyIdle } from "../nginx/directives.ts";
import { type Directive, parseNginx } from "../nginx/parse.ts";
import type { Annotations } from "./annotations.ts";

interface Snippet {
  readonly policies: Json;
  /** The directive that may restrict who gets in. */
  readonly lost: string | undefined;
}

/** Directives whose loss admits no request that was kept out. Any other may do more than its name says. */
const OPEN =
  /^(?:add_header|expires|etag|sub_filter\w*|gzip\w*|brotli\w*|proxy_(?!pass$|intercept)\w+|access_log|log_format|limit_rate\w*|charset|more_(?:set|clear)_headers)$/;

export function snippetOf(annotations: Annotations, name: "configuration-snippet" | "server-snippet"): Snippet {
  const text = annotations.get(name);
  const request: Record<string, string> = {};
  const response: Record<string, string> = {};
  const removed: string[] = [];
  const withheld: string[] = [];
  let lost: string | undefined;
  if (text === undefined) return { policies: {}, lost };
  let directives: readonly Directive[];
  try {
    directives = parseNginx(name, text, undefined, new Findings());
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    annotations.find("error", name, `line ${error.place.line} of ${name}: ${error.message}`);
    return { policies: {}, lost: name };
  }
  for (const each of directives) {
    const [field = "", value = ""] = each.args;
    const isFixed = !each.args.some((arg) => arg.includes("$"));
    const headers = each.args.map((arg) => /^([\w-]+):\s*(.*)$/.exec(arg));
    if (whyIdle(each.name) !== undefined) continue;
    if (each.name === "proxy_set_header" && isFixed && value !== "") request[field] = value;
    else if (each.name === "proxy_set_header" && value === "") withheld.push(field);
    else if (each.name === "more_clear_input_headers" && !each.args.some((arg) => /[^\w-]/.test(arg)))
      withheld.push(...each.args);
    else if (each.name === "more_set_input_headers" && isFixed && headers.every((header) => header !== null))
      for (const header of headers) request[header?.[1] ?? ""] = header?.[2] ?? "";
    else if (each.name === "add_header" && isFixed) response[field] = value;
    else if (each.name === "proxy_hide_header" || each.name === "more_clear_headers") removed.push(...each.args);
    else if (each.name === "more_set_headers" && isFixed && headers.every((header) => header !== null))
      for (const header of headers) response[header?.[1] ?? ""] = header?.[2] ?? "";
    else {
      if (!OPEN.test(each.name)) lost ??= `${each.name} of ${name}`;
      // The backend may trust it, so clients must not set it.
      if (each.name === "proxy_set_header") withheld.push(field);
      annotations.find(
        "error",
        name,
        `${[each.name, ...each.args].join(" ")} in line ${each.line} of ${name} is left out`,
        "write a filter or a TracegatePolicy that does the same",
      );
    }
  }
  const some = (fields: object): boolean => Object.keys(fields).length > 0;
  return {
    policies: {
      ...((some(request) || withheld.length > 0) && {
        requestHeaderModifier: {
          ...(some(request) && { set: request }),
          ...(withheld.length > 0 && { remove: withheld }),
        },
      }),
      ...((some(response) || removed.length > 0) && {
        responseHeaderModifier: {
          ...(some(response) && { set: response }),
          ...(removed.length > 0 && { remove: removed }),
        },
      }),
    },
    lost,
  };
}
