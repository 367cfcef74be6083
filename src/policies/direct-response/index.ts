import type { DirectResponse } from "../../ir/policies.ts";
import type { CompiledPolicy } from "../types.ts";

const KIND = "directResponse";
/** Statuses whose responses end with their head (RFC 9110 15.3.5, 15.3.6, 15.4.5). */
const BODILESS = [204, 205, 304];

/**
 * Answers without a backend (reference 3.12). No content-type is added: a responseHeaderModifier sets the one that fits.
 * Throws when the status is no final one or cannot have the body.
 */
export function create(config: DirectResponse): CompiledPolicy {
  const { status, body = "" } = config;
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new Error(`${KIND}.status: ${status} is not a status from 200 to 599`);
  if (body !== "" && BODILESS.includes(status))
    throw new Error(`${KIND}.body: a response with status ${status} has no body; remove it or choose another status`);
  const bytes = Buffer.byteLength(body);
  return {
    kind: KIND,
    shown: config,
    onRequest({ trace }) {
      trace?.applied("direct_response", { status, bytes });
      return { status, headers: [], body };
    },
  };
}
