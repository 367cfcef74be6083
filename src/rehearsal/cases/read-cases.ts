import { dirname } from "node:path";
import type { Path } from "../../base/paths.ts";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { ConfigDocument } from "../../config/parse/document.ts";
import type { Ir } from "../../ir/ir.ts";
import { parsingWith } from "../../policies/schema/cel.ts";
import type { Diagnostic } from "../../translation/problems/diagnostics.ts";
import { knownFields } from "../../translation/problems/known-fields.ts";
import { reportIssues } from "../../translation/problems/schema-errors.ts";
import { type Assumptions, readAssumptions } from "../assumptions.ts";
import { BadFacts, factsOfRequest, type RequestFacts } from "../facts.ts";
import { assumedByFile, pemOf } from "../named-file.ts";
import { caseFile, type Expectation, type TestCase } from "./case-schema.ts";
import { Places } from "./places.ts";

/** One case, ready to be rehearsed. */
export interface Case {
  readonly name: string;
  /** Where it stands in the file, from 1. */
  readonly line: number;
  readonly column: number;
  /** The same of a field of it. */
  readonly placeOf: (field: Path) => { readonly line: number; readonly column: number };
  readonly facts: RequestFacts;
  readonly assumed: Assumptions;
  readonly expect: Expectation;
}

/** The cases of a file, and the names that the configuration has for them. */
export interface Cases {
  readonly file: string;
  readonly cases: readonly Case[];
  readonly places: Places;
}

const FIELDS = knownFields(caseFile);
const NAMED = ["listener", "route", "backend"] as const;

/** Reads the text of a case file for a configuration. `env` replaces variables, as in a configuration. */
export function readCases(
  file: string,
  text: string,
  ir: Ir,
  env: Readonly<Record<string, string | undefined>>,
): Cases | { readonly diagnostics: readonly Diagnostic[] } {
  const document = new ConfigDocument(file, text, env);
  if (!document.ok) return document;
  const parsed = caseFile.safeParse(document.value, parsingWith(STANDARD_ENVIRONMENT));
  if (!parsed.success) {
    reportIssues(document, parsed.error.issues, FIELDS);
    return document;
  }
  const places = new Places(ir);
  const names = new Set<string>();
  const cases = parsed.data.cases.map((each, i): Case => {
    const path = ["cases", i];
    if (names.has(each.name))
      document.report([...path, "name"], { message: "another case has this name; a report could not tell them apart" });
    names.add(each.name);
    const facts = checked(document, path, () => factsOf(each.request, dirname(file)));
    const host = facts && hostOf(each.request, facts);
    for (const kind of NAMED) {
      const name = each.expect[kind];
      if (name === null || name === undefined) continue;
      const problem =
        places.problemWith(kind, name) ?? (host === undefined ? undefined : places.unmet(kind, name, host));
      if (problem !== undefined) document.report([...path, "expect", kind], problem);
    }
    return {
      name: each.name,
      ...document.placeOf(path),
      placeOf: (field) => document.placeOf([...path, ...field]),
      facts: facts as RequestFacts,
      // One by one, so that each mistake is reported.
      assumed: Object.assign(
        {},
        ...Object.entries(each.assume ?? {}).map(([name, value]) =>
          checked(document, path, () => readAssumptions({ [name]: assumedByFile(name, value, dirname(file)) })),
        ),
      ),
      expect: each.expect,
    };
  });
  return document.ok ? { file, cases, places } : document;
}

/** `folder`: that of the file, to which names of other files are relative. */
function factsOf(
  { url, method, headers = {}, body = "", source, version, certificate, key }: TestCase["request"],
  folder: string,
): RequestFacts {
  const pems = Object.entries({ certificate, key }).flatMap(([request, pem]) =>
    pem === undefined ? [] : [pemOf(pem, folder, { request })],
  );
  const client = { source, version, certificate: pems.length === 0 ? undefined : pems.join("\n") };
  return factsOfRequest({ url, method, headers: Object.entries(headers), body, ...client });
}

/** The host that selects both listener and route; undefined if the URL has none or the case sets a Host field. */
function hostOf(
  { headers = {} }: TestCase["request"],
  { url: { protocol, hostname } }: RequestFacts,
): string | undefined {
  const hasField = Object.keys(headers).some((name) => name.toLowerCase() === "host");
  return hasField || !["http:", "https:", "tls:"].includes(protocol) ? undefined : hostname.toLowerCase();
}

/** The value, or a problem in the case at `path`, with which the file has no cases. */
function checked<Value>(document: ConfigDocument, path: Path, read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof BadFacts)) throw error;
    const { message, field } = mistakeIn(error);
    document.report([...path, ...field], { message });
    return undefined;
  }
}

/** What is wrong with a case, in which field, and what to write there. */
export function mistakeIn({ message, hint, about }: BadFacts): { readonly message: string; readonly field: Path } {
  if (about === undefined) return { message: `${message}; ${hint}`, field: ["request"] };
  if ("request" in about) return { message: `${message}; ${hint}`, field: ["request", about.request] };
  const { assume, ways } = about;
  return { message: `${message}; ${ways === undefined ? hint : assumeHint(ways)}`, field: ["assume", assume] };
}

function assumeHint(ways: readonly (readonly [name: string, value: string])[]): string {
  if (ways.length === 0) return "leave it out, or check which route the request gets";
  return `write ${[...new Set(ways.map(([name, value]) => `${name}: ${value}`))].join(" or ")}`;
}
