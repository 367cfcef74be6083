import { readFileSync } from "node:fs";
import { tests } from "@bufbuild/cel-spec/testdata/conformance.js";

/** A value as the conformance data writes it: the JSON form of `cel.expr.Value`. */
export interface ExpectedValue {
  readonly nullValue?: null;
  readonly boolValue?: boolean;
  readonly int64Value?: string;
  readonly uint64Value?: string;
  readonly doubleValue?: number | string;
  readonly stringValue?: string;
  readonly bytesValue?: string;
  readonly typeValue?: string;
  readonly listValue?: { readonly values?: readonly ExpectedValue[] };
  readonly mapValue?: { readonly entries?: readonly { readonly key: ExpectedValue; readonly value: ExpectedValue }[] };
  readonly objectValue?: { readonly "@type": string; readonly value?: string };
  readonly enumValue?: unknown;
}

/** A type as the conformance data writes it: the JSON form of `cel.expr.Type`. */
export interface ExpectedType {
  readonly dyn?: unknown;
  readonly null?: unknown;
  readonly primitive?: string;
  readonly wrapper?: string;
  readonly wellKnown?: string;
  readonly messageType?: string;
  readonly typeParam?: string;
  readonly type?: ExpectedType;
  readonly listType?: { readonly elemType?: ExpectedType };
  readonly mapType?: { readonly keyType?: ExpectedType; readonly valueType?: ExpectedType };
  readonly abstractType?: { readonly name: string; readonly parameterTypes?: readonly ExpectedType[] };
  readonly error?: unknown;
}

interface OverloadDeclaration {
  readonly params?: readonly ExpectedType[];
  readonly resultType: ExpectedType;
  readonly isInstanceFunction?: boolean;
}

export interface Case {
  readonly name: string;
  readonly expr: string;
  readonly container?: string;
  readonly disableCheck?: boolean;
  readonly disableMacros?: boolean;
  readonly checkOnly?: boolean;
  readonly typeEnv?: readonly {
    readonly name: string;
    readonly ident?: { readonly type: ExpectedType };
    readonly function?: { readonly overloads: readonly OverloadDeclaration[] };
  }[];
  readonly bindings?: Readonly<Record<string, { readonly value?: ExpectedValue }>>;
  readonly value?: ExpectedValue;
  readonly typedResult?: { readonly result?: ExpectedValue; readonly deducedType?: ExpectedType };
  readonly evalError?: unknown;
  readonly anyEvalErrors?: unknown;
}

interface Suite {
  readonly name: string;
  readonly suites?: readonly Suite[];
  readonly tests?: readonly { readonly original: unknown }[];
}

/** Every case of the language's conformance suite, named `file/section/test`. */
export function conformanceCases(): readonly Case[] {
  return (tests as Suite).suites?.flatMap((suite) => casesOf(suite, suite.name)) ?? [];
}

function casesOf({ suites = [], tests: own = [] }: Suite, path: string): Case[] {
  const here = own.map(({ original }) => {
    const test = original as Case;
    return { ...test, name: `${path}/${test.name ?? test.expr}` };
  });
  return [...here, ...suites.flatMap((suite) => casesOf(suite, `${path}/${suite.name}`))];
}

/**
 * The cases that are known to fail, with their reasons. The file names a case a line; a line that begins with `#` is the reason
 * of those below it.
 */
export function knownFailures(): readonly (readonly [name: string, reason: string])[] {
  let reason = "";
  return readFileSync(new URL("known-failures.txt", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      if (!line.startsWith("#")) return [[line, reason] as const];
      reason = line.slice(1).trim();
      return [];
    });
}
