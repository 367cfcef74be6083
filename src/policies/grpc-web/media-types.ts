/** The media types of gRPC-Web: `application/grpc-web[-text][+format]` (gRPC-Web protocol, "Content-Type" and "Accept"). */
import { type FieldText, getHeader, type HeaderList, type HttpRequest } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";

/** The form of a gRPC-Web request, and the form that its response must have. */
export interface GrpcWebForm {
  /** The request's body is base64. */
  readonly textRequest: boolean;
  /** The response's body must be base64. */
  readonly textResponse: boolean;
  /** Names the messages' encoding, such as `+proto`; may be empty. */
  readonly format: string;
}

const GRPC = "application/grpc";
const BINARY = "application/grpc-web";
const TEXT = "application/grpc-web-text";
/** Parameters, such as a charset, say nothing about messages. */
const WEB_TYPE = /^application\/grpc-web(?<text>-text)?(?<format>\+[\w.+-]+)?[ \t]*(?:;|$)/i;

/** Reads whether a request is a gRPC-Web call; those are always POST. */
export function webCallOf({ method, headers }: Pick<HttpRequest, "method" | "headers">): GrpcWebForm | undefined {
  if (method !== "POST") return undefined;
  const { groups } = WEB_TYPE.exec(getHeader(headers, "content-type") ?? "") ?? {};
  if (groups === undefined) return undefined;
  const textRequest = groups.text !== undefined;
  return { textRequest, textResponse: wantsText(headers, textRequest), format: groups.format?.toLowerCase() ?? "" };
}

/** Clients that cannot read a binary body piece by piece name the text form in `Accept`. Without either name: as the request. */
function wantsText(headers: HeaderList, textRequest: boolean): boolean {
  const accept = (getHeader(headers, "accept") ?? "").toLowerCase();
  if (accept.includes(TEXT)) return true;
  return textRequest && !accept.includes(BINARY);
}

/** The type of the request that goes to the backend. */
export function grpcTypeOf({ format }: GrpcWebForm): FieldText {
  return latin1(GRPC + format);
}

/** The type for the client of a response whose type is that of gRPC, with the same format. */
export function webTypeOf({ textResponse }: GrpcWebForm, grpcType: string): FieldText {
  return latin1((textResponse ? TEXT : BINARY) + grpcType.slice(GRPC.length));
}
