/** Configurations that people try first, by words at the beginning of a line that this one never has there. */
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

/** Fields of which one or the other begins each configuration of this program. */
const OWN = /^(config|binds|gateways|routes|backends|frontendPolicies)\s*:/m;

/**
 * What a text is when it was written for another program; undefined when it does not look like it. `value` is what it says as
 * YAML, undefined when it is none.
 */
export function otherProgram(text: string, value: unknown): string | undefined {
  // With a mistake in it, it is no YAML, and a body that it answers with may look like anything.
  if (OWN.test(text)) return undefined;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const begins = (word: string): boolean =>
    isObject
      ? Object.hasOwn(value, word)
      : new RegExp(`^[\\t ]*${word.replace(" ", "\\s*")}(?![\\w-])`, "m").test(text);
  const found = PROGRAMS.find(({ words }) => words.every(begins));
  if (found === undefined) return undefined;
  return `holds ${found.what}, which tracegate does not read; its own format is in docs/configuration.md, and examples/ has files to start from`;
}
