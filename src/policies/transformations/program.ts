import { GatewayError, messageOf } from "../../base/errors.ts";
import { isObject } from "../../base/fields.ts";
import {
  type Activation,
  type CelEnvironment,
  type CelValue,
  type Expression,
  held,
  toJson,
  toText,
} from "../../cel/index.ts";
import { type HeaderList, removeHeader, setHeader } from "../../http/message/message.ts";
import { isToken } from "../../http/message/syntax.ts";
import { applied, Decisions, failed } from "../contract/decisions.ts";
import { FRAMING, fieldName } from "../contract/header-edits.ts";
import type { ConfigPath } from "../contract/policy-error.ts";
import type { RequestMetadata } from "../contract/types.ts";
import type { Transformation } from "../schema/transformations.ts";
import { bodyBytes, sendableText } from "../shared/expressions.ts";
import { type EditedMessage, REQUEST_PSEUDO, RESPONSE_PSEUDO } from "./messages.ts";

/** Values of at least this many bytes are counted: smaller ones take less than the request itself. */
const COUNTED = 4096;

/** A field and the expression for its value. */
interface Named {
  readonly name: string;
  readonly expression: Expression;
}

/** One compiled side of a transformation. */
export interface Program {
  readonly expressions: readonly Expression[];
  /** Fields that it sets or removes, lower-case; those of `replace` are known only at run time. */
  readonly names: readonly string[];
  /** It has `replace`. */
  readonly replaces: boolean;
  /**
   * Changes the message. Returns failures such as `set.x-user: …`; undefined if everything succeeded. `hold` counts the bytes of large
   * metadata and may throw to end the request.
   */
  run(
    message: EditedMessage,
    variables: Activation,
    requestMetadata: RequestMetadata,
    hold: (bytes: number) => void,
  ): readonly string[] | undefined;
}

interface TransformationDecision {
  readonly code: "changed" | "partly";
  readonly side: "request" | "response";
  /** As `Program.run` returns them. */
  readonly failures: readonly string[] | undefined;
}

export const decisions = new Decisions<TransformationDecision>("transformation", {
  changed: ({ side }) => applied(`changed the ${side}`, { side }),
  partly: ({ side, failures = [] }) =>
    failed(`changed the ${side}, but failed on ${failures.join("; ")}`, { side, failed: failures }),
});

/**
 * Compiles one side, in the order metadata, replace, add, set, remove, body (docs/policies/transformations.md); each expression
 * sees the changes of those before it. Throws a PolicyError, whose path begins with `path`, for fields that frame the message,
 * and CelError for expressions that do not compile.
 */
export function compileProgram(
  path: ConfigPath,
  config: Transformation,
  side: "request" | "response",
  cel: CelEnvironment,
): Program {
  const pseudo = side === "request" ? REQUEST_PSEUDO : RESPONSE_PSEUDO;
  const compile = (text: string): Expression => cel.compileExpression(text, side);
  const named = (field: "add" | "set"): Named[] =>
    Object.entries(config[field] ?? {}).map(([name, text]) => ({
      name: pseudo.has(name.toLowerCase()) ? name.toLowerCase() : fieldName([...path, field], name),
      expression: compile(text),
    }));
  const metadata = Object.entries(config.metadata ?? {}).map(([name, text]) => ({ name, expression: compile(text) }));
  const add = named("add");
  const set = named("set");
  const remove = (config.remove ?? []).map((name) => fieldName([...path, "remove"], name));
  const replace = config.replace === undefined ? undefined : compile(config.replace);
  const body = config.body === undefined ? undefined : compile(config.body);

  return {
    expressions: [...metadata, ...add, ...set].map(({ expression }) => expression).concat(replace ?? [], body ?? []),
    names: [...[...add, ...set].map(({ name }) => name).filter((name) => !pseudo.has(name)), ...remove],
    replaces: replace !== undefined,
    run(message, variables, requestMetadata, hold) {
      let failures: string[] | undefined;
      const fail = (what: string, error: unknown): void => {
        failures ??= [];
        failures.push(`${what}: ${messageOf(error)}`);
      };
      for (const { name, expression } of metadata) {
        try {
          requestMetadata.metadata ??= {};
          const { value, bytes } = held(expression.evaluate(variables));
          if (bytes > COUNTED) hold(bytes);
          requestMetadata.metadata[name] = value;
        } catch (error) {
          if (error instanceof GatewayError) throw error;
          fail(`metadata.${name}`, error);
        }
      }
      if (replace !== undefined) {
        try {
          replaceHeaders(message, pseudo, replace.evaluate(variables));
        } catch (error) {
          fail("replace", error);
        }
      }
      for (const entry of add) {
        try {
          putHeader(message, pseudo, entry, variables, true);
        } catch (error) {
          // A client's value must not remain where the configuration puts its own: the backend would trust it.
          removeHeader(message.headers, entry.name);
          fail(`add.${entry.name}`, error);
        }
      }
      for (const entry of set) {
        try {
          putHeader(message, pseudo, entry, variables, false);
        } catch (error) {
          removeHeader(message.headers, entry.name);
          fail(`set.${entry.name}`, error);
        }
      }
      for (const name of remove) removeHeader(message.headers, name);
      if (body !== undefined) {
        // Empty if the expression fails: the original body may be what the transformation was meant to hide.
        let bytes: Uint8Array = NOTHING;
        try {
          bytes = bodyBytes(body.evaluate(variables));
        } catch (error) {
          fail("body", error);
        }
        message.body.replace(bytes);
      }
      return failures;
    },
  };
}

const NOTHING = new Uint8Array(0);

/** `beside`: adds a field instead of replacing it. Throws an Error for null and for values that are not valid in a field. */
function putHeader(
  message: EditedMessage,
  pseudo: ReadonlySet<string>,
  { name, expression }: Named,
  variables: Activation,
  beside: boolean,
): void {
  const text = toText(expression.evaluate(variables));
  if (text === undefined) throw new Error("there is no value");
  const value = sendableText(text);
  if (pseudo.has(name)) message.setPseudo(name, value);
  else if (beside) message.headers.push(name, value);
  else setHeader(message.headers, name, value);
}

/**
 * Replaces all fields except those that frame the message by a map of names to strings or lists of strings. Throws before it
 * changes anything but pseudo-header fields.
 */
function replaceHeaders(message: EditedMessage, pseudo: ReadonlySet<string>, value: CelValue): void {
  const json = toJson(value);
  if (!isObject(json)) throw new TypeError("the value is not a map");
  const fields: HeaderList = [];
  const others: HeaderList = [];
  for (const [name, given] of Object.entries(json)) {
    const lower = name.toLowerCase();
    const target = pseudo.has(lower) ? others : fields;
    if (FRAMING.has(lower)) continue;
    if (target === fields && !isToken(lower)) throw new Error(`${JSON.stringify(name)} is not a header name`);
    for (const each of Array.isArray(given) ? given : [given]) target.push(lower, sendableText(String(each)));
  }
  for (let i = 0; i < others.length; i += 2) message.setPseudo(others[i] as string, others[i + 1] as string);
  const { headers } = message;
  const framing = headers.filter((_, i) => FRAMING.has(headers[i - (i % 2)] as string));
  headers.splice(0, headers.length, ...framing, ...fields);
}
