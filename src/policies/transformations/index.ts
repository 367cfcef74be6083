/**
 * `transformations`: changes requests and responses by CEL (docs/policies/transformations.md). In: expressions for header fields,
 * pseudo-header fields, the body, and values to keep for later expressions. Out: the changed message, or TG_BODY_TOO_LARGE or
 * TG_RESPONSE_TOO_LARGE where an expression reads a body that is too long; expressions that fail never reject a message.
 * `program.ts` compiles and runs one side, `messages.ts` is the message that it edits, also for `ext-proc` and callouts.
 */
import { REDACTED } from "../../base/redaction.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { redactValues } from "../contract/header-edits.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import type { Transformation, Transformations } from "../schema/transformations.ts";
import { bodyNeeds, wholeBody } from "../shared/expressions.ts";
import { EditedRequest, EditedResponse } from "./messages.ts";
import { compileProgram, decisions, type Program } from "./program.ts";

export const transformations = defineConditionalPolicy({
  decisions,
  kind: "transformations",
  phases: ["gateway", "route", "backend"],
  traceStage: "transformation",
  calls: "apply",
  traceKey: "transformation",
  prepare,
  redact: redactTransformations,
});

/**
 * Compiles both sides. Bodies are buffered only if an expression reads them: others stream past. The response side may read the
 * request body, which has to be buffered before it is forwarded. Throws CelError for expressions that do not compile, a
 * PolicyError for fields that frame the message.
 */
function prepare(config: Transformations, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const { request, response } = config;
  const onWay = request && compileProgram(["request"], request, "request", cel);
  const back = response && compileProgram(["response"], response, "response", cel);
  const wanted = bodyNeeds([...(onWay?.expressions ?? []), ...(back?.expressions ?? [])]);
  const hooks: PolicyHooks = {
    ...((onWay !== undefined || wanted.request) && {
      onRequest(context) {
        if (!wanted.request) return transformRequest(onWay, context);
        return wholeBody(context, "request").then(() => transformRequest(onWay, context));
      },
    }),
    ...(back !== undefined && {
      onResponse(context, message) {
        const run = (): undefined => {
          const { variables, requestMetadata } = context;
          const edited = new EditedResponse(context, message);
          const failures = back.run(edited, variables, requestMetadata, (bytes) => context.holdMetadata(bytes));
          const code = failures === undefined ? "changed" : "partly";
          context.trace?.report(decisions, { code, side: "response", failures });
        };
        return wanted.response ? wholeBody(context, "response").then(run) : run();
      },
    }),
  };
  return ({ ownFields }) => {
    for (const name of onWay?.names ?? []) ownFields.add(name);
    return hooks;
  };
}

/**
 * `replace` decides about every field, so all of the client's imitations are removed before it, and those of the new fields after
 * it.
 */
function transformRequest(program: Program | undefined, context: PolicyContext): undefined {
  if (program === undefined) return undefined;
  if (program.replaces) context.claimAllFields();
  const { variables, requestMetadata } = context;
  const edited = new EditedRequest(context);
  const failures = program.run(edited, variables, requestMetadata, (bytes) => context.holdMetadata(bytes));
  context.trace?.report(decisions, { code: failures === undefined ? "changed" : "partly", side: "request", failures });
  if (program.replaces) claimUnderscores(context);
  return undefined;
}

/** Fields with `_` come from `replace` now: client fields and trailers that imitate them with `-` must go. */
function claimUnderscores(context: PolicyContext): void {
  for (const name of context.request.headers.filter((each, i) => i % 2 === 0 && each.includes("_")))
    context.claimField(name);
}

/** Redacts expressions of headers that carry secrets: an expression may be the secret itself, as a literal. */
export function redactTransformations(config: Transformations, hidden: ReadonlySet<string>): Transformations {
  const { request, response } = config;
  return {
    ...config,
    ...(request !== undefined && { request: redactSide(request, hidden) }),
    ...(response !== undefined && { response: redactSide(response, hidden) }),
  };
}

function redactSide(side: Transformation, hidden: ReadonlySet<string>): Transformation {
  return {
    ...side,
    ...(side.replace !== undefined && namesKey(side.replace, hidden) && { replace: REDACTED }),
    ...(side.add !== undefined && { add: redactValues(side.add, hidden) }),
    ...(side.set !== undefined && { set: redactValues(side.set, hidden) }),
  };
}

/** Whether a map literal in the expression has one of the names as a key. Textual, so it may redact more than needed. */
function namesKey(text: string, names: ReadonlySet<string>): boolean {
  return [...text.matchAll(/(["'])([^"'\\]+)\1\s*:/g)].some(([, , key = ""]) => names.has(key.toLowerCase()));
}
