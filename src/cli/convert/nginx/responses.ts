/** Responses without a backend: `return`, and `rewrite` that redirects. */
import type { Json } from "../converted.ts";
import type { Directive } from "./parse.ts";
import type { Reading } from "./reading.ts";
import { one, type Scope } from "./scope.ts";
import type { Server } from "./servers.ts";
import { celOf, type TextScope } from "./variables.ts";

/** A response without a backend. */
export function returned(reading: Reading, at: Directive, scope: Scope, server: Server, groups?: string): Json {
  const [first = "", second] = at.args;
  const isUrl = second === undefined && !/^\d+$/.test(first);
  const status = isUrl ? 302 : Number(first);
  const text = isUrl ? first : second;
  const own: TextScope = { serverName: server.names[0] ?? "", ...(groups !== undefined && { groups }) };
  if ([301, 302, 303, 307, 308].includes(status) && text !== undefined) return redirect(reading, at, status, text, own);
  if (status === 444) {
    reading.find("warning", at, "the connection is not closed: clients get 403");
    return { directResponse: { status: 403 } };
  }
  if (status < 200 || status > 599) {
    reading.find("error", at, `return ${first}: ${status} cannot be sent`, "choose a status from 200 to 599");
    return { directResponse: { status: 500 } };
  }
  const type = one(scope, "default_type")?.args[0] ?? "text/plain";
  const headers = text === undefined ? {} : { headers: { "content-type": JSON.stringify(type) } };
  if (text === undefined || !text.includes("$"))
    return { directResponse: { status, ...(text !== undefined && { body: text }), ...headers } };
  const bodyExpression = celOf(text, own);
  if (bodyExpression === undefined)
    reading.find("error", at, "the text of the response is left out", "write bodyExpression in CEL");
  return { directResponse: { status, ...(bodyExpression !== undefined && { bodyExpression }), ...headers } };
}

function redirect(reading: Reading, at: Directive, status: number, url: string, scope: TextScope): Json {
  const [, scheme, host, path] =
    /^(https?|\$scheme):\/\/(\$host|\$http_host|\$server_name|[\w.-]+)(?::\d+)?(\$request_uri|\$uri(?:\$is_args\$args)?)$/.exec(
      url,
    ) ?? [];
  if (scheme !== undefined && host !== undefined && path !== undefined && !/:\d+\$/.test(url)) {
    const name = host === "$server_name" ? scope.serverName : host;
    return {
      requestRedirect: {
        ...(scheme !== "$scheme" && { scheme }),
        ...(!name.startsWith("$") && name !== "" && { authority: { full: name } }),
        status,
      },
    };
  }
  const cel = celOf(url, scope);
  if (cel === undefined) {
    reading.find(
      "error",
      at,
      `a redirect to ${url} has no equivalent: its requests get 501`,
      "compute location by CEL in directResponse.headers",
    );
    return { directResponse: { status: 501 } };
  }
  return { directResponse: { status, headers: { location: cel } } };
}

/** A `rewrite` that redirects; undefined for any other. */
export function redirectedBy(reading: Reading, at: Directive, server: Server): Json | undefined {
  const [pattern = "", replacement = "", flag] = at.args;
  const isUrl = /^(https?:\/\/|\$scheme)/.test(replacement);
  if (flag !== "permanent" && flag !== "redirect" && !isUrl) return undefined;
  const text = replacement.endsWith("?") ? replacement.slice(0, -1) : `${replacement}$is_args$args`;
  return redirect(reading, at, flag === "permanent" ? 301 : 302, text, {
    serverName: server.names[0] ?? "",
    groups: pattern,
  });
}
