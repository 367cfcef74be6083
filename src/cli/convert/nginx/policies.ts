/** Who may send requests to a location, and what is done with responses. */
import { isIP } from "node:net";
import type { Json } from "../converted.ts";
import { concurrencyLimits } from "./concurrency.ts";
import { allLocations } from "./locations.ts";
import type { Directive } from "./parse.ts";
import type { Reading } from "./reading.ts";
import { all, intervalOf, nearest, one, type Scope, sizeOf, valuesOf } from "./scope.ts";
import { celOf } from "./variables.ts";

/** Who may send a request, and how much. */
export function access(reading: Reading, scope: Scope): Json {
  const policies: Record<string, unknown> = {};
  const realm = one(scope, "auth_basic");
  const users = one(scope, "auth_basic_user_file");
  if (realm !== undefined && realm.args[0] !== "off") {
    if (users === undefined || users.args[0]?.includes("$") === true)
      reading.find(
        "error",
        realm,
        "auth_basic has no file of users, so every sign-in fails",
        "put the users into basicAuth.htpasswd",
      );
    const file = users?.args[0];
    const htpasswd = file === undefined || file.includes("$") ? "" : { file: reading.file(file) };
    policies.basicAuth = { mode: "strict", realm: realm.args[0], htpasswd };
  }
  const rules = nearest(scope, (each) => each.name === "allow" || each.name === "deny");
  if (one(scope, "satisfy")?.args[0] === "any" && policies.basicAuth !== undefined) {
    const free = withoutPassword(reading, rules);
    if (free !== undefined) {
      policies.satisfy = { any: [{ ipAccess: free }, { basicAuth: policies.basicAuth }] };
      delete policies.basicAuth;
    }
  } else if (rules.length > 0) Object.assign(policies, ipAccess(reading, rules));
  const limits = all(scope, "limit_req").flatMap((each) => rateLimit(reading, each, scope));
  if (limits.length > 0) policies.localRateLimit = limits;
  const concurrent = concurrencyLimits(reading, scope);
  if (concurrent.length > 0) policies.concurrencyLimit = concurrent;
  const size = one(scope, "client_max_body_size")?.args[0] ?? "1m";
  policies.maxRequestBodySize = sizeOf(size);
  return policies;
}

/** Who gets 403. */
function ipAccess(reading: Reading, rules: readonly Directive[]): Json {
  const { allow, deny, others } = addressesOf(reading, rules);
  if (others !== "deny") return deny.length > 0 ? { ipAccess: { deny } } : {};
  if (allow.length === 0) deny.push(...EVERYBODY);
  return { ipAccess: { ...(allow.length > 0 && { allow }), ...(deny.length > 0 && { deny }) } };
}

/** Who needs no password with `satisfy any`; undefined = nobody. Who is not named needs one, too. */
function withoutPassword(reading: Reading, rules: readonly Directive[]): Json | undefined {
  const { allow, deny, others } = addressesOf(reading, rules);
  if (others === "allow") allow.push(...EVERYBODY);
  return allow.length === 0 ? undefined : { allow, ...(deny.length > 0 && { deny }) };
}

const EVERYBODY = ["0.0.0.0/0", "::/0"];

interface Addresses {
  readonly allow: string[];
  readonly deny: string[];
  /** What a line says about all addresses that the lines before it do not name. */
  readonly others: "allow" | "deny" | undefined;
}

/** `allow` and `deny` are tried in order; here `deny` comes first. */
function addressesOf(reading: Reading, rules: readonly Directive[]): Addresses {
  const allow: string[] = [];
  const deny: string[] = [];
  for (const each of rules) {
    const [network = ""] = each.args;
    if (network === "all") return { allow, deny, others: each.name === "deny" ? "deny" : "allow" };
    if (isIP(network.split("/")[0] ?? "") === 0)
      reading.find("error", each, `${each.name} ${network} is left out`, "write addresses or networks");
    else if (each.name === "deny") {
      if (allow.length > 0)
        reading.find("warning", each, "beats the lines with allow before it", "check that no address is in both");
      deny.push(network);
    } else allow.push(network);
  }
  return { allow, deny, others: undefined };
}

function rateLimit(reading: Reading, at: Directive, scope: Scope): readonly Json[] {
  const option = (from: Directive, name: string): string | undefined =>
    from.args.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
  const zone = option(at, "zone");
  const defined = valuesOf(reading.http, "limit_req_zone").find((each) => option(each, "zone")?.split(":")[0] === zone);
  const [, count = "", unit = ""] = /^(\d+)r\/([sm])$/.exec((defined && option(defined, "rate")) ?? "") ?? [];
  const key = defined === undefined ? undefined : celOf(defined.args[0] ?? "", { serverName: "" });
  if (defined === undefined || count === "" || key === undefined) {
    reading.find(
      "error",
      at,
      `the limit of zone ${zone ?? ""} is left out`,
      "write it as localRateLimit, with a key in CEL",
    );
    return [];
  }
  const burst = Number(option(at, "burst") ?? "0");
  if (burst > 0 && !at.args.includes("nodelay"))
    reading.find(
      "warning",
      at,
      "requests of a burst are served at once, not delayed",
      "lower maxTokens if the backend needs even gaps",
    );
  const status = one(scope, "limit_req_status")?.args[0] ?? "503";
  if (status !== "429") reading.find("warning", at, `requests over the limit get 429, not ${status}`);
  return [
    { maxTokens: burst + 1, tokensPerFill: 1, fillInterval: intervalOf(Number(count), unit === "s" ? 1 : 60), key },
  ];
}

/** What is done with responses. */
export function responses(reading: Reading, scope: Scope): Json {
  const policies: Record<string, unknown> = {};
  const add: Record<string, string> = {};
  for (const each of all(scope, "add_header")) {
    const [name = "", value = "", always] = each.args;
    if (value.includes("$"))
      reading.find(
        "error",
        each,
        `${name} with variables is left out`,
        "add the header by CEL in transformations.response",
      );
    else {
      add[name] = value;
      if (always !== "always") reading.find("note", each, `${name} is in responses of every status, as with always`);
    }
  }
  const remove = all(scope, "proxy_hide_header").flatMap(({ args }) => args);
  if (Object.keys(add).length > 0 || remove.length > 0)
    policies.responseHeaderModifier = {
      ...(Object.keys(add).length > 0 && { add }),
      ...(remove.length > 0 && { remove }),
    };
  if (one(scope, "gzip")?.args[0] === "on") {
    const types = (one(scope, "gzip_types")?.args ?? []).filter((each) => each !== "*");
    policies.compression = {
      encodings: ["gzip"],
      contentTypes: ["text/html", ...types],
      minSize: Number(one(scope, "gzip_min_length")?.args[0] ?? "20"),
    };
  }
  const pages = all(scope, "error_page").flatMap((each) => errorPage(reading, each, scope));
  if (pages.length > 0) policies.errorPages = pages;
  return policies;
}

function errorPage(reading: Reading, at: Directive, scope: Scope): readonly Json[] {
  const statuses = at.args.filter((each) => /^[45]\d\d$/.test(each)).map(Number);
  const page = at.args.at(-1) ?? "";
  const plain = at.args.length === statuses.length + 1 && /^\/[\w./-]+$/.test(page);
  const [, server = []] = scope.length > 2 ? scope : [[], scope[0] ?? []];
  const where = allLocations(server).find(({ kind, path }) => kind === "exact" && path === page);
  const root = one([where?.directive.block ?? [], ...scope], "root")?.args[0];
  if (!plain || root === undefined || root.includes("$")) {
    reading.find("error", at, `error_page ${at.args.join(" ")} is left out`, "write the page into errorPages");
    return [];
  }
  const from = one(scope, "proxy_intercept_errors")?.args[0] === "on" ? "both" : "gateway";
  const html = { file: reading.file(`${root.replace(/\/$/, "")}${page}`) };
  // A backend that cannot be reached is 502 in nginx and 503 here.
  const isDown = statuses.includes(502) && !statuses.includes(503);
  return [{ statuses, from, html }, ...(isDown ? [{ statuses: [503], from: "gateway", html }] : [])];
}
