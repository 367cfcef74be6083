import { type HttpRequest, setHeader } from "../../../http/message/message.ts";
import { latin1 } from "../../../http/message/syntax.ts";
import type { CredentialPlaces } from "../../contract/credential-names.ts";
import type { OutgoingContext } from "../../contract/types.ts";
import type { CredentialTarget } from "../../schema/location.ts";
import { sendableText } from "../expressions.ts";
import { removeCookie, setQueryParameter } from "./places.ts";

/**
 * Returns what sets the gateway's own credential on a request. It replaces what the client sent at this location, and is redacted
 * in the trace from then on. Adds the location to `places`. The function throws an Error for a credential that cannot be sent.
 */
export function credentialPutter(
  target: CredentialTarget,
  places: CredentialPlaces,
): (context: OutgoingContext, credential: string) => void {
  places.add(target);
  if ("header" in target) {
    const { name, prefix } = target.header;
    return ({ request, trace }, credential) => {
      trace?.hide("header", name);
      setHeader(request.headers, name, sendableText(prefix + credential));
    };
  }
  if ("queryParameter" in target) {
    const { name } = target.queryParameter;
    return ({ request, trace }, credential) => {
      trace?.hide("query parameter", name);
      request.search = setQueryParameter(request.search, name, credential);
    };
  }
  const { name } = target.cookie;
  return ({ request, trace }, credential) => {
    trace?.hide("header", "cookie");
    putCookie(request, name, credential);
  };
}

function putCookie(request: HttpRequest, name: string, value: string): void {
  if (/[^\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]/.test(value))
    throw new Error("the credential has characters that a cookie cannot contain (RFC 6265, section 4.1.1)");
  const headers = removeCookie(request.headers, name);
  const index = headers.findIndex((field, i) => i % 2 === 0 && field === "cookie");
  const pair = latin1(`${name}=${value}`);
  if (index < 0) headers.push("cookie", pair);
  else headers[index + 1] = `${headers[index + 1]}; ${pair}`;
  request.headers = headers;
}
