import { GatewayError } from "../../base/errors.ts";
import type {
  CommonResponse,
  CommonResponse_ResponseStatus,
  ImmediateResponse,
} from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message.ts";
import { headerMap } from "../envoy/headers.ts";
import type { MessageBody } from "../types.ts";
import { BODY_MODES, type Modes, overridden } from "./modes.ts";
import { PrefixStage } from "./prefix-stage.ts";
import type { Question, Session } from "./session.ts";
import { StreamedBody } from "./streamed-body.ts";
import { TrailerStage } from "./trailer-stage.ts";

/** The answer to headers brings the whole body with it: the service is not asked about the body any more. */
const CONTINUE_AND_REPLACE: CommonResponse_ResponseStatus = 1;

/** The request or the response of an exchange. */
export interface Side {
  readonly direction: "request" | "response";
  readonly body: MessageBody;
  /** Bytes that may be held of the body. */
  readonly limit: number;
  /** Pseudo headers first. */
  headers(): HeaderList;
  /** Its length is said in its head: then it has no trailers (RFC 9112 7.1.2). */
  hasLength(): boolean;
  /** What the service says besides the body. */
  apply(common: CommonResponse): void;
  /** What goes with the first message. */
  readonly context: Question;
}

export interface Outcome {
  readonly modes: Modes;
  /** The service answers in the place of whoever would. */
  readonly immediate?: ImmediateResponse;
}

/** Sends one side through the service. Rejects with a GatewayError when that fails. */
export async function processSide(
  session: Session,
  side: Side,
  before: Modes,
  { failOpen, allowModeOverride }: { readonly failOpen: boolean; readonly allowModeOverride: boolean },
): Promise<Outcome> {
  const { direction, body } = side;
  let modes = before;
  let context = side.context;
  const stream = (): void => {
    const trailers = sendsTrailers(modes, direction);
    body.through((sink) => new StreamedBody(session, sink, direction, trailers, failOpen, context));
  };
  let streaming = false;
  if (modes[`${direction}HeaderMode`] === "send") {
    const part = `${direction}Headers` as const;
    // The service may want to see the body before it says anything about the headers.
    streaming = bodyMode(modes, side) === "fullDuplexStreamed" && !allowModeOverride;
    const question: Question = {
      ...context,
      protocolConfig: {
        requestBodyMode: BODY_MODES[modes.requestBodyMode],
        responseBodyMode: BODY_MODES[modes.responseBodyMode],
      },
      request: { case: part, value: { headers: headerMap(side.headers()), endOfStream: body.empty } },
    };
    const asked = session.ask(part, question, !streaming);
    context = {};
    if (streaming) stream();
    const { response, modeOverride } = await asked;
    if (response.case === "immediateResponse") return { modes, immediate: response.value };
    if (allowModeOverride && modeOverride !== undefined) modes = overridden(modes, modeOverride);
    const common = response.case === part ? response.value.response : undefined;
    if (common !== undefined) side.apply(common);
    if (common?.status === CONTINUE_AND_REPLACE && !streaming) {
      const replacement = mutatedBody(common);
      if (replacement !== undefined) body.replace(replacement);
      return { modes };
    }
  }
  if (streaming) return { modes };
  const mode = bodyMode(modes, side);
  if (mode === "fullDuplexStreamed") {
    stream();
    return { modes };
  }
  const trailers = mayHaveTrailers(modes, side);
  if (mode !== "none") {
    const how = { partial: mode === "bufferedPartial", keepTrailers: trailers };
    const immediate = await processBuffered(session, side, how, context);
    if (immediate !== undefined) return { modes, immediate };
    context = {};
  }
  if (trailers) body.through((sink) => new TrailerStage(session, sink, direction, context, failOpen));
  return { modes };
}

async function processBuffered(
  session: Session,
  side: Side,
  { partial, keepTrailers }: { readonly partial: boolean; readonly keepTrailers: boolean },
  context: Question,
): Promise<ImmediateResponse | undefined> {
  const { direction, body, limit } = side;
  const { bytes, complete } = await body.peek(limit);
  if (!complete && !partial) {
    if (direction === "request") throw new GatewayError("TG_BODY_TOO_LARGE");
    throw new GatewayError("TG_EXT_PROC", "the response is too long for the buffer");
  }
  const part = `${direction}Body` as const;
  const request = { case: part, value: { body: bytes, endOfStream: complete } };
  const { response } = await session.ask(part, { ...context, request });
  if (response.case === "immediateResponse") return response.value;
  const common = response.case === part ? response.value.response : undefined;
  if (common !== undefined) side.apply(common);
  const replacement = mutatedBody(common);
  if (replacement === undefined) return undefined;
  // A body with another length has it announced, and so no trailers.
  if (complete && !keepTrailers) body.replace(replacement);
  else body.through((sink) => new PrefixStage(sink, bytes.length, replacement));
  return undefined;
}

/** What the service puts in the place of a body; undefined: nothing. */
function mutatedBody(common: CommonResponse | undefined): Uint8Array | undefined {
  const { mutation } = common?.bodyMutation ?? {};
  switch (mutation?.case) {
    case "body":
      return mutation.value;
    case "clearBody":
      return mutation.value ? new Uint8Array(0) : undefined;
    case "streamedResponse":
      // Only says that the body goes on, as far as it has no bytes.
      return mutation.value.body.length > 0 ? mutation.value.body : undefined;
    default:
      return undefined;
  }
}

function bodyMode(modes: Modes, { direction, body }: Side): Modes["requestBodyMode"] {
  return body.empty ? "none" : modes[`${direction}BodyMode`];
}

/** Trailers that the service is to see are looked for, without the body. */
export function mayHaveTrailers(modes: Modes, side: Pick<Side, "direction" | "body" | "hasLength">): boolean {
  return sendsTrailers(modes, side.direction) && !side.body.empty && !side.hasLength();
}

function sendsTrailers(modes: Modes, direction: Side["direction"]): boolean {
  return modes[`${direction}TrailerMode`] === "send";
}
