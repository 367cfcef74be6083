import type { PolicyDeps } from "../deps.ts";
import type { Transformations } from "../policy-set.ts";
import { bodyNeeds, bufferBody } from "../shared/bodies.ts";
import type { CompiledPolicy, PolicyContext } from "../types.ts";
import { EditedRequest, EditedResponse } from "./messages.ts";
import { compileProgram, type Program } from "./program.ts";

const KIND = "transformations";

/**
 * Changes requests and responses by expressions (reference 3.10). A header whose expression fails is removed, a body whose
 * expression fails is empty. Waits for bodies only where an expression reads them. Throws CelError for expressions that
 * cannot be used, and an Error for headers that may not be touched.
 */
export function create(config: Transformations, { ownFields, cel }: PolicyDeps): CompiledPolicy {
  const { request, response } = config;
  const onWay = request && compileProgram(`${KIND}.request`, request, "request", cel);
  for (const name of onWay?.names ?? []) ownFields.add(name);
  const back = response && compileProgram(`${KIND}.response`, response, "response", cel);
  const wanted = bodyNeeds([...(onWay?.expressions ?? []), ...(back?.expressions ?? [])]);
  return {
    kind: KIND,
    ...((onWay !== undefined || wanted.request) && {
      onRequest(context) {
        if (!wanted.request) return transformRequest(onWay, context);
        return bufferBody(context, "request").then(() => transformRequest(onWay, context));
      },
    }),
    ...(back !== undefined && {
      onResponse(context, message) {
        const run = (): void => {
          const failed = back.run(new EditedResponse(context, message), context.variables, context.requestMetadata);
          report(context, "response", failed);
        };
        return wanted.response ? bufferBody(context, "response").then(run) : run();
      },
    }),
  };
}

function transformRequest(program: Program | undefined, context: PolicyContext): undefined {
  if (program === undefined) return undefined;
  if (program.replaces) context.claimAllFields();
  report(context, "request", program.run(new EditedRequest(context), context.variables, context.requestMetadata));
  if (program.replaces) claimUnderscores(context);
  return undefined;
}

/** Fields with `_` are from `replace` now, so none of the client's may look like one of them. */
function claimUnderscores(context: PolicyContext): void {
  for (const name of context.request.headers.filter((each, i) => i % 2 === 0 && each.includes("_")))
    context.claimField(name);
}

function report({ trace }: PolicyContext, side: string, failed: readonly string[] | undefined): void {
  if (failed === undefined) trace?.applied("transformation", { side });
  else trace?.failed("transformation", { side, failed });
}
