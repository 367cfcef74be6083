/**
 * `extProc`: sends requests and responses through a processing service over gRPC (Envoy's `envoy.service.ext_proc.v3`, reference
 * 3.9). In: head, body and trailers of both sides, as the modes request. Out: the parts as changed by the service, or its own
 * response in place of the backend's: TG_EXT_PROC_DENIED if that is an error. If the service fails, the exchange ends with TG_EXT_PROC
 * or, with `failOpen`, continues without it unless the service already has part of a body.
 *
 * One gRPC stream (`session.ts`) serves an exchange. `side.ts` walks one side of it through the service, `stages.ts` are the bodies
 * that stream, `modes.ts` which parts the service gets.
 */
import { GatewayError, messageOf } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { getHeader, type HttpResponse, type LocalReply } from "../../http/message/message.ts";
import type { Phase } from "../../trace/events.ts";
import { redactCalling } from "../calls/redact.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { applyHeaderEdits } from "../contract/header-edits.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import { editRequest, headerEdits, headerRemovals, pseudoHeaders, structOf } from "../envoy/convert.ts";
import { envoyMethods } from "../envoy/load-methods.ts";
import { mayContinueWithout } from "../shared/call-for.ts";
import { compileAll, evaluateAll, type NamedExpressions } from "../shared/expressions.ts";
import { EditedResponse, REQUEST_PSEUDO, RESPONSE_PSEUDO } from "../transformations/messages.ts";
import type { Modes } from "./modes.ts";
import type { ExtProc } from "./schema.ts";
import { decisions, ProcessingFailed, Session } from "./session.ts";
import { mayHaveTrailers, processSide, type Side } from "./side.ts";

/** Key of attributes in messages, the name of Envoy's filter, which services look for. */
const NAMESPACE = "envoy.filters.http.ext_proc";

/** State of one exchange: both sides share the stream, and the modes as the service has changed them. */
interface Running {
  readonly session: Session;
  modes: Modes;
}

export const extProc = defineConditionalPolicy({
  decisions,
  kind: "extProc",
  phases: ["gateway", "route"],
  prepare,
  redact: redactCalling,
});

/** Compiles metadata and attributes. Throws CelError for expressions that do not compile. */
function prepare(config: ExtProc, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const values: MessageValues = {
    metadata: Object.entries(config.metadataContext).map(
      ([namespace, texts]) => [namespace, compileAll(texts, "request", cel)] as const,
    ),
    attributes: {
      request: compileAll(config.requestAttributes, "request", cel),
      response: compileAll(config.responseAttributes, "response", cel),
    },
  };
  return (deps) => hooksOf(config, values, deps);
}

/** Compiled values that go with the first message of a side. */
interface MessageValues {
  readonly metadata: readonly (readonly [namespace: string, NamedExpressions])[];
  readonly attributes: Readonly<Record<"request" | "response", NamedExpressions>>;
}

function hooksOf(
  config: ExtProc,
  { metadata, attributes }: MessageValues,
  { callouts, phase }: PolicyDeps,
): PolicyHooks {
  const callout = callouts(config.target, config.policies);
  // Hooks hold no state of requests. The map is weak, so an entry ends with its exchange.
  const running = new WeakMap<PolicyContext, Running>();
  const { allowModeOverride, responseHeaderMode, responseBodyMode, responseTrailerMode } = config.processingOptions;
  const inResponses = responseHeaderMode === "send" || responseBodyMode !== "none" || allowModeOverride;

  /** Sends one side through the service. Resolves with its own response, undefined to continue; rejects to end the exchange. */
  const run = async (
    context: PolicyContext,
    side: Omit<Side, "context" | "limit">,
  ): Promise<LocalReply | undefined> => {
    const { direction } = side;
    const { process } = await envoyMethods();
    let state = running.get(context);
    if (state === undefined) {
      state = {
        session: new Session(callout, process, context, config.timeout, phase),
        modes: config.processingOptions,
      };
      running.set(context, state);
    }
    const { session } = state;
    if (session.skipped) return undefined;
    const failOpen = config.failureMode === "failOpen" && mayContinueWithout(context);
    const { variables } = context;
    const own = structOf(evaluateAll(attributes[direction], variables));
    const filterMetadata = Object.fromEntries(
      metadata.map(([name, values]) => [name, structOf(evaluateAll(values, variables))]),
    );
    const question = {
      ...(metadata.length > 0 && { metadataContext: { filterMetadata } }),
      ...(Object.keys(own).length > 0 && { attributes: { [NAMESPACE]: own } }),
    };
    let immediate = session.immediate;
    try {
      if (immediate === undefined) {
        const whole = { ...side, context: question, limit: context.maxBufferSize };
        const outcome = await processSide(session, whole, state.modes, { failOpen, allowModeOverride });
        state.modes = outcome.modes;
        immediate = outcome.immediate ?? session.immediate;
      }
    } catch (error) {
      session.close();
      const rejection = error instanceof ProcessingFailed ? session.failed(direction, error.failure, failOpen) : error;
      if (rejection !== undefined) throw rejection;
      session.skipped = true;
      return undefined;
    }
    if (immediate === undefined) {
      context.trace?.report(decisions, { code: "processed", side: direction });
      return undefined;
    }
    session.close();
    const answer = session.answer(direction, immediate);
    if (answer instanceof GatewayError) throw answer;
    return answer;
  };

  return {
    onRequest: (context) => run(context, requestSide(context, phase)),
    ...((inResponses || responseTrailerMode === "send") && {
      onResponse(context, response) {
        const side = responseSide(context, response);
        // If no mode wants this response, no promise delays it.
        if (!inResponses && !mayHaveTrailers(config.processingOptions, side)) return undefined;
        return run(context, side);
      },
      upstreamOnly: true,
    }),
  };
}

/** The request as a side. Only before the route is chosen can `clear_route_cache` have an effect. */
function requestSide(context: PolicyContext, phase: Phase): Omit<Side, "context" | "limit"> {
  const { request } = context;
  return {
    direction: "request",
    body: context.requestBody,
    headers: () => [...Object.entries(pseudoHeaders(context)).flat(), ...request.headers],
    hasLength: () => getHeader(request.headers, "content-length") !== undefined,
    apply({ headerMutation: mutation, clearRouteCache }) {
      const removed = headerRemovals(mutation?.removeHeaders);
      editRequest(context, [...removed, ...headerEdits(mutation?.setHeaders, "set", REQUEST_PSEUDO)], decisions);
      // Before the route is chosen, the changed request decides anyway.
      if (clearRouteCache && phase === "route") context.trace?.report(decisions, { code: "routeStays" });
    },
  };
}

/** The response as a side. Of pseudo-header fields, `:status` can change (RFC 9113, section 8.3.2). */
function responseSide(context: PolicyContext, response: HttpResponse): Omit<Side, "context" | "limit"> {
  return {
    direction: "response",
    body: context.responseBody,
    headers: () => [":status", String(response.status), ...response.headers],
    hasLength: () => getHeader(response.headers, "content-length") !== undefined,
    apply({ headerMutation: mutation }) {
      const edits = [
        ...headerRemovals(mutation?.removeHeaders),
        ...headerEdits(mutation?.setHeaders, "set", RESPONSE_PSEUDO),
      ];
      applyHeaderEdits(
        edits.filter(({ name }) => !RESPONSE_PSEUDO.has(name)),
        response.headers,
      );
      const status = edits.find(({ name }) => RESPONSE_PSEUDO.has(name));
      if (status === undefined) return;
      try {
        new EditedResponse(context, response).setPseudo(status.name, status.value);
      } catch (error) {
        context.trace?.report(decisions, { code: "invalidTarget", name: status.name, why: messageOf(error) });
      }
    },
  };
}
