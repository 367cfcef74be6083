/**
 * `grpcWeb`: lets browsers call gRPC services (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). In: requests in either
 * form of gRPC-Web, binary or base64. Out: gRPC over HTTP/2 to the backend, and the response in the form that the client accepts.
 * Everything between the two edges sees gRPC: it runs first on requests, and responses are translated after all other policies.
 */
import { isGrpc } from "../../http/grpc-reply.ts";
import { getHeader, type HttpResponse, setHeader } from "../../http/message/message.ts";
import { applied, Decisions, skipped } from "../contract/decisions.ts";
import type { PolicyHooks, ResponseTranslation } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { type GrpcWebForm, grpcTypeOf, webCallOf, webTypeOf } from "./media-types.ts";
import type { GrpcWeb } from "./schema.ts";
import { RequestStage, ResponseStage } from "./stages.ts";

const KIND = "grpcWeb";

type Form = "text" | "binary";
type GrpcWebDecision =
  | { readonly code: "otherCall" }
  | { readonly code: "translated"; readonly request: Form; readonly response: Form };

const decisions = new Decisions<GrpcWebDecision>(KIND, {
  otherCall: () => skipped("not a gRPC-Web call"),
  translated: ({ request, response }) =>
    applied(`gRPC-Web to gRPC: ${request} request, ${response} response`, { request, response }),
});

export const grpcWeb = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare: (_config: GrpcWeb) => () => HOOKS,
  redact: (config) => config,
});

const HOOKS: PolicyHooks = {
  onRequest(context) {
    const { request, trace } = context;
    const call = webCallOf(request);
    if (call === undefined) {
      trace?.report(decisions, { code: "otherCall" });
      return undefined;
    }
    const { textRequest, textResponse } = call;
    setHeader(request.headers, "content-type", grpcTypeOf(call));
    context.requestBody.through((sink) => new RequestStage(sink, textRequest));
    context.becomeGrpc(translationFor(call));
    const form = (text: boolean): Form => (text ? "text" : "binary");
    trace?.report(decisions, { code: "translated", request: form(textRequest), response: form(textResponse) });
    return undefined;
  },
};

/**
 * Responses of other types, such as the page of a login or an error of a proxy in between, go to the client as they are: it
 * derives a gRPC status from the HTTP status.
 */
function translationFor(call: GrpcWebForm): ResponseTranslation {
  return ({ headers }: HttpResponse) => {
    if (!isGrpc(headers)) return undefined;
    setHeader(headers, "content-type", webTypeOf(call, getHeader(headers, "content-type") ?? ""));
    // A response without messages has its status in the head ("Trailers-Only"), and so has that of gRPC-Web.
    if (getHeader(headers, "grpc-status") !== undefined) return undefined;
    return (sink) => new ResponseStage(sink, call.textResponse);
  };
}
