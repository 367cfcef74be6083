import { type ComponentChildren, Fragment, h, options } from "preact";
import { escapeUnsafe } from "../src/base/terminal-text.ts";

/** The letters of right-to-left scripts, as ranges of Unicode. */
const LETTERS = String.raw`[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]+`;
/** Right-to-left words. The group keeps them when a text is split. */
const RIGHT_TO_LEFT = new RegExp(`(${LETTERS}(?: +${LETTERS})*)`, "u");

/**
 * Clients wrote much of what pages show, often in the middle of a sentence. So every page shows characters that hide or reorder text as escapes,
 * as terminals do, and isolates right-to-left words, which would otherwise move the numbers and quotes beside them.
 */
export function showTextsSafely(): void {
  options.vnode = (vnode) => {
    const { type, props } = vnode;
    // The children of a component are its own business: it makes elements of them.
    if (typeof type === "string" || type === Fragment) props.children = visible(props.children, type === "bdi");
  };
}

/** `isolated`: the element around them isolates them. */
function visible(children: ComponentChildren, isolated: boolean): ComponentChildren {
  if (Array.isArray(children)) return children.map((child) => visible(child, isolated));
  if (typeof children !== "string") return children;
  const text = escapeUnsafe(children);
  if (isolated || !RIGHT_TO_LEFT.test(text)) return text;
  return text.split(RIGHT_TO_LEFT).map((part, index) => (index % 2 === 0 ? part : h("bdi", null, part)));
}
