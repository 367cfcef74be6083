import { CEL_EXAMPLES } from "../../src/cel/examples.ts";
import { FUNCTIONS } from "../../src/cel/functions/functions.ts";
import { type Activation, CelSecret, STANDARD_ENVIRONMENT, toJson } from "../../src/cel/index.ts";

/** The variables of the examples. */
const ACTIVATION: Activation = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "shop.example",
    path: "/a/b",
    search: "?x=1&x=2",
    version: "HTTP/1.1",
    headers: ["cookie", "session=abc", "accept", "text/html, */*", "x-user", "alice", "authorization", "Bearer t"],
  },
  source: { address: "10.1.2.3", port: 4711, rawAddress: "10.1.2.3", rawPort: 4711 },
  jwt: Object.defineProperty({ sub: "alice", roles: ["admin"] }, "rawToken", { value: new CelSecret("e30.e30.c2ln") }),
};

/**
 * docs/expressions.md with its tables of functions. Throws when an example does not give the stated value, or a function has no
 * example, so the page is correct and complete.
 */
export function celPage(page: string): string {
  const covered = CEL_EXAMPLES.map(([, examples]) => examples.map(([text]) => text).join("\n")).join("\n");
  for (const name of FUNCTIONS.keys())
    if (!covered.includes(`${name}(`)) throw new Error(`src/cel/examples.ts: ${name}() has no example`);
  const sections = CEL_EXAMPLES.map(
    ([title, examples]) =>
      `### ${title}\n\n| Expression | Value |\n|---|---|\n${examples.map(([text, value]) => row(text, value)).join("\n")}\n`,
  );
  const [before, after] = ["<!-- functions: generated from src/cel/examples.ts -->", "<!-- end of functions -->"];
  const [start, end] = [page.indexOf(before), page.indexOf(after)];
  if (start < 0 || end < start) throw new Error(`docs/expressions.md: the lines ${before} and ${after} are missing`);
  return `${page.slice(0, start)}${before}\n\n${sections.join("\n")}\n${page.slice(end)}`;
}

function row(text: string, value: string): string {
  const actual = evaluated(text);
  if (value !== "…" && actual !== value) throw new Error(`src/cel/examples.ts: ${text} gives ${actual}, not ${value}`);
  return `| \`${text.replaceAll("|", "\\|")}\` | ${value === "…" ? "" : `\`${value.replaceAll("|", "\\|")}\``} |`;
}

function evaluated(text: string): string {
  try {
    const value = toJson(STANDARD_ENVIRONMENT.compileExpression(text, "response").evaluate(ACTIVATION));
    return JSON.stringify(value) ?? "";
  } catch (error) {
    return `error: ${error instanceof Error ? error.message.split("\n", 1)[0] : ""}`;
  }
}
