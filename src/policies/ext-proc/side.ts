/** One side of an exchange, request or response, on its way through a processing service, as its modes say. */
import { GatewayError } from "../../base/errors.ts";
import type {
  CommonResponse,
  CommonResponse_ResponseStatus,
  ImmediateResponse,
} from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message.ts";
import { headerMap } from "../envoy/convert.ts";
import type { MessageBody } from "../types.ts";
import { BODY_MODES, type Modes, overridden } from "./modes.ts";
import type { ProcessingRequest, Session } from "./session.ts";
import { PrefixStage, StreamedBody, TrailerStage } from "./stages.ts";

/** The answer to the headers brings the whole body with it, so the service does not receive the body. */
const CONTINUE_AND_REPLACE: CommonResponse_ResponseStatus = 1;

/** The request or the response of an exchange. */
export interface Side {
  readonly direction: "request" | "response";
  readonly body: MessageBody;
  /** Bytes of the body that may be buffered. */
  readonly limit: number;
  /** Pseudo headers first. */
  headers(): HeaderList;
  /** Its head has Content-Length, so it has no trailers (RFC 9112, section 7.1.2). */
  hasLength(): boolean;
  /** Applies what the service changes besides the body. */
  apply(common: CommonResponse): void;
  /** Metadata and attributes, which go with the first message. */
  readonly context: ProcessingRequest;
}

export interface Outcome {
  readonly modes: Modes;
  /** The service answers the client itself. */
  readonly immediate?: ImmediateResponse;
}

/**
 * Sends one side through the service: headers first, then the body and the trailers as far as the modes say. A streamed body is
 * still under way when this resolves. Rejects with a GatewayError: TG_EXT_PROC when the service fails, TG_BODY_TOO_LARGE for a
 * request whose body does not fit the buffer.
 */
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
    const settings = { direction, failOpen, context };
    body.through((sink) => new StreamedBody(session, sink, settings, sendsTrailers(modes, direction)));
  };
  let streaming = false;
  if (modes[`${direction}HeaderMode`] === "send") {
    const part = `${direction}Headers` as const;
    // The service may want to see the body before it says anything about the headers.
    streaming = bodyMode(modes, side) === "fullDuplexStreamed" && !allowModeOverride;
    const message: ProcessingRequest = {
      ...context,
      protocolConfig: {
        requestBodyMode: BODY_MODES[modes.requestBodyMode],
        responseBodyMode: BODY_MODES[modes.responseBodyMode],
      },
      request: { case: part, value: { headers: headerMap(side.headers()), endOfStream: body.empty } },
    };
    const answered = session.roundTrip(part, message, !streaming);
    context = {};
    if (streaming) stream();
    const { response, modeOverride } = await answered;
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
  if (trailers) body.through((sink) => new TrailerStage(session, sink, { direction, failOpen, context }));
  return { modes };
}

/** Sends a body in one message. `partial`: of a longer one its beginning. `keepTrailers`: the service wants to see them too. */
async function processBuffered(
  session: Session,
  side: Side,
  { partial, keepTrailers }: { readonly partial: boolean; readonly keepTrailers: boolean },
  context: ProcessingRequest,
): Promise<ImmediateResponse | undefined> {
  const { direction, body, limit } = side;
  const { bytes, complete } = await body.peek(limit);
  if (!complete && !partial) {
    if (direction === "request") throw new GatewayError("TG_BODY_TOO_LARGE");
    throw new GatewayError("TG_EXT_PROC", "the response is too long for the buffer");
  }
  const part = `${direction}Body` as const;
  const request = { case: part, value: { body: bytes, endOfStream: complete } };
  const { response } = await session.roundTrip(part, { ...context, request });
  if (response.case === "immediateResponse") return response.value;
  const common = response.case === part ? response.value.response : undefined;
  if (common !== undefined) side.apply(common);
  const replacement = mutatedBody(common);
  if (replacement === undefined) return undefined;
  // `replace` announces the new length, which rules out trailers.
  if (complete && !keepTrailers) body.replace(replacement);
  else body.through((sink) => new PrefixStage(sink, bytes.length, replacement));
  return undefined;
}

/** What the service puts in the place of a body; undefined = the body stays. */
function mutatedBody(common: CommonResponse | undefined): Uint8Array | undefined {
  const { mutation } = common?.bodyMutation ?? {};
  switch (mutation?.case) {
    case "body":
      return mutation.value;
    case "clearBody":
      return mutation.value ? new Uint8Array(0) : undefined;
    case "streamedResponse":
      // Without bytes it only acknowledges the body.
      return mutation.value.body.length > 0 ? mutation.value.body : undefined;
    default:
      return undefined;
  }
}

function bodyMode(modes: Modes, { direction, body }: Side): Modes["requestBodyMode"] {
  return body.empty ? "none" : modes[`${direction}BodyMode`];
}

/** Whether the service gets the trailers of this message if it turns out to have any. */
export function mayHaveTrailers(modes: Modes, side: Pick<Side, "direction" | "body" | "hasLength">): boolean {
  return sendsTrailers(modes, side.direction) && !side.body.empty && !side.hasLength();
}

function sendsTrailers(modes: Modes, direction: Side["direction"]): boolean {
  return modes[`${direction}TrailerMode`] === "send";
}
