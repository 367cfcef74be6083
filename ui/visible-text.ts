import { type ComponentChildren, Fragment, h, options } from "preact";
import { escapeUnsafe } from "../src/base/terminal-text.ts";

/** What Unicode reserves for scripts that are written from right to left, in an expression. */
const LETTERS = String.raw`[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]+`;
/** Words of such scripts. The group keeps them when a text is split. */
const RIGHT_TO_LEFT = new RegExp(`(${LETTERS}(?: +${LETTERS})*)`, "u");

/**
 * Much of what is shown comes from clients, and often stands in the middle of a sentence. So on every page, characters that hide or reorder text
 * are shown as escapes, the same ones as on terminals, and words that are written from right to left are isolated: what stands beside them, such
 * as numbers and quotes, stays in its place.
 */
export function showTextsSafely(): void {
  options.vnode = (vnode) => {
    const { type, props } = vnode;
    // The children of a component are its own business: it makes elements of them.
    if (typeof type === "string" || type === Fragment) props.children = visible(props.children, type === "bdi");
  };
}

/** `isolated`: by the element that has them. */
function visible(children: ComponentChildren, isolated: boolean): ComponentChildren {
  if (Array.isArray(children)) return children.map((child) => visible(child, isolated));
  if (typeof children !== "string") return children;
  const text = escapeUnsafe(children);
  if (isolated || !RIGHT_TO_LEFT.test(text)) return text;
  return text.split(RIGHT_TO_LEFT).map((part, index) => (index % 2 === 0 ? part : h("bdi", null, part)));
}
