import { ASSUMPTIONS } from "../../src/rehearsal/assumptions.ts";

/** The table of docs/explain.md: what can be assumed. */
export function assumptionTable(): string {
  const rows = Object.entries(ASSUMPTIONS).map(([name, { about, otherwise, values }]) => {
    const ways = values.map((value) => `\`${name}=${value}\``).join(", ");
    return `| ${about} | ${otherwise} | ${ways} |`;
  });
  return `${["| what is not known | without an assumption | `--assume` |", "|---|---|---|", ...rows].join("\n")}\n`;
}
