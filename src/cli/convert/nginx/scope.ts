/** Directives as the blocks around them inherit them, and the values in them. */
import { asProxy } from "./directives.ts";
import type { Directive } from "./parse.ts";

/** Blocks from the innermost to the outermost, in which a setting is looked up. */
export type Scope = readonly (readonly Directive[])[];

export function valuesOf(block: readonly Directive[], name: string): readonly Directive[] {
  return block.filter((each) => each.name === name);
}

/** A block's directives replace those of outer blocks, as nginx inherits them. */
export function nearest(scope: Scope, fits: (each: Directive) => boolean): readonly Directive[] {
  return scope.map((block) => block.filter(fits)).find((found) => found.length > 0) ?? [];
}

export function all(scope: Scope, name: string): readonly Directive[] {
  return nearest(scope, (each) => each.name === name);
}

export function one(scope: Scope, name: string): Directive | undefined {
  return all(scope, name)[0];
}

export function withPort(host: string, port: number): string {
  return host.startsWith("unix:") || /:\d+$/.test(host) ? host : `${host}:${port}`;
}

/** `60`, `1m`, `1m30s`, `500ms` and `1d`. */
export function durationOf(text: string): string {
  return (/^\d+$/.test(text) ? `${text}s` : text)
    .replace(/\s/g, "")
    .replace(/(\d+)d/, (_all, days: string) => `${Number(days) * 24}h`);
}

/** `8m` → `8MiB`: the units of nginx are binary. */
export function sizeOf(text: string): string | number {
  const [, count = "0", unit = ""] = /^(\d+)([kmg]?)$/i.exec(text) ?? [];
  return unit === "" ? Number(count) : `${count}${unit.toUpperCase()}iB`;
}

/** The time for which a limit of `count` requests in `seconds` gives one token: nginx counts at even intervals. */
export function intervalOf(count: number, seconds: number): string {
  const interval = Math.round((seconds * 1_000_000) / count);
  return interval % 1000 === 0 ? `${interval / 1000}ms` : `${interval}us`;
}

/** With what passes requests on in terms of `proxy_pass`, of which gRPC is the kind with HTTP/2; settings of the other kind do not count. */
export function passing(scope: Scope): Scope {
  const passed = scope[0]?.find(({ name }) => name === "grpc_pass");
  if (passed === undefined) return scope;
  const [, scheme = "grpc://", server = ""] = /^(grpcs?:\/\/)?(.*)$/s.exec(passed.args[0] ?? "") ?? [];
  const url = `${scheme === "grpcs://" ? "https" : "http"}://${server}`;
  const { file, line, column } = passed;
  const version = { name: "proxy_http_version", args: ["2"], file, line, column };
  const levels = scope.map((block) =>
    block
      .filter(({ name }) => !name.startsWith("proxy_"))
      .map((each) =>
        each === passed ? { ...each, name: "proxy_pass", args: [url] } : { ...each, name: asProxy(each.name) },
      ),
  );
  return [[version, ...(levels[0] ?? [])], ...levels.slice(1)];
}
