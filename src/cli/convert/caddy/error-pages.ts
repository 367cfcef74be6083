/** `handle_errors` with a text, as entries of `errorPages`. */
import type { Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { isJson } from "../patterns.ts";
import type { Directive } from "./parse.ts";
import { hasPlaceholders } from "./placeholders.ts";

export interface ErrorPage {
  readonly at: Directive;
  /** Numbers, `4xx` and `5xx`. */
  readonly statuses: readonly (number | string)[];
  /** With placeholders of Caddy for the status, and no others. */
  readonly body: string;
}

const STATUS = /\{(?:err|http\.error)\.status_code\}/g;

/** Undefined: it does more than write a text, which a finding says. */
export function errorPage(at: Directive, findings: Findings): ErrorPage | undefined {
  const [only, ...others] = at.block ?? [];
  const [body = "", ...more] = only?.name === "respond" && only.block === undefined ? only.args : [];
  const isText = more.length === 0 && !/^(?:[/@*]|\d{3}$|$)/.test(body);
  const isPlain = isText && !body.includes("{{") && !hasPlaceholders(body.replace(STATUS, ""));
  const isKnown = at.args.every((each) => /^[45](?:\d\d|xx)$/.test(each));
  if (!isPlain || !isKnown || others.length > 0) {
    findings.find("error", at, "handle_errors is left out", "write its pages into errorPages");
    return undefined;
  }
  const written = at.args.map((each) => (each.endsWith("xx") ? each : Number(each)));
  return { at, body, statuses: written.length === 0 ? ["4xx", "5xx"] : written };
}

export function pagePolicies(pages: readonly ErrorPage[]): Json {
  return {
    errorPages: pages.map(({ statuses, body }) => ({
      // A backend that cannot be reached is 502 in Caddy and 503 here.
      statuses: statuses.includes(502) && !statuses.includes(503) ? [...statuses, 503] : statuses,
      [isJson(body.replace(STATUS, "500")) ? "json" : "text"]: body.replace(STATUS, "{{ response.code }}"),
    })),
  };
}

/** The text for a status that `error` chooses; undefined: none. */
export function textFor(status: number, pages: readonly ErrorPage[]): string | undefined {
  const group = `${Math.floor(status / 100)}xx`;
  const page = pages.find(({ statuses }) => statuses.includes(status) || statuses.includes(group));
  return page?.body.replace(STATUS, String(status));
}
