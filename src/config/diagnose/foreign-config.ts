import { isObject } from "../../base/fields.ts";

/** Formats of other programs that people try first, recognized by line beginnings that ours never has. */
const PROGRAMS: readonly { readonly what: string; readonly words: readonly string[] }[] = [
  { what: "Kubernetes objects", words: ["apiVersion", "kind"] },
  { what: "a configuration of Envoy", words: ["static_resources"] },
  { what: "a configuration of Envoy", words: ["dynamic_resources"] },
  { what: "a configuration of Traefik", words: ["entryPoints"] },
  { what: "a configuration of Kong", words: ["_format_version"] },
  { what: "a configuration of nginx", words: ["server {"] },
  { what: "a configuration of nginx", words: ["http {"] },
  { what: "a configuration of HAProxy", words: ["frontend", "bind"] },
  { what: "a configuration of Caddy", words: ["reverse_proxy"] },
];

/** Top-level fields: every configuration of tracegate has at least one of them. */
const OWN = /^(config|binds|gateways|routes|backends|frontendPolicies)\s*:/m;

/**
 * The program that a text was written for, if it does not look like a configuration of tracegate. `value` is the text parsed
 * as YAML; undefined when that failed.
 */
export function otherProgram(text: string, value: unknown): string | undefined {
  // Our own configuration may also fail to parse, and a text in it, such as a response body, may look like another format.
  if (OWN.test(text)) return undefined;
  const begins = (word: string): boolean =>
    isObject(value)
      ? Object.hasOwn(value, word)
      : new RegExp(`^[\\t ]*${word.replace(" ", "\\s*")}(?![\\w-])`, "m").test(text);
  const found = PROGRAMS.find(({ words }) => words.every(begins));
  if (found === undefined) return undefined;
  return `holds ${found.what}, which tracegate does not read; its own format is in docs/configuration.md, and examples/ has files to start from`;
}
