import { createContext, type VNode } from "preact";
import { useContext } from "preact/hooks";
import { formatOrigin, type Origin as Written } from "../../src/base/origin.ts";
import { hashOf } from "../place.ts";

/** Whether places are those of the configuration in effect, which has a page to link to. */
export const InEffect = createContext(true);

/** Where something of the configuration is written, with a link to what is in effect there. */
export function Origin({ origin }: { readonly origin: Written }): VNode {
  // The field is more exact than its line.
  const { place: _place, ...field } = origin;
  return <a href={configHash(formatOrigin(field))}>{formatOrigin(origin)}</a>;
}

/** As `Origin`, for a place that is only known as text, such as `gateway.yaml:31`. */
export function OriginText({ text }: { readonly text: string }): VNode {
  return useContext(InEffect) ? <a href={configHash(text)}>{text}</a> : <span class="quiet">{text}</span>;
}

function configHash(at: string): string {
  return hashOf("/config", { at });
}
