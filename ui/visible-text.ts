import { type ComponentChildren, Fragment, options } from "preact";
import { escapeUnsafe } from "../src/base/terminal-text.ts";

/**
 * Shows characters that hide or reorder text as escapes, on every page: much of what is shown comes from clients. Terminals get the same
 * ones.
 */
export function showHiddenCharacters(): void {
  options.vnode = (vnode) => {
    const { type, props } = vnode;
    // The children of a component are its own business: it makes elements of them.
    if (typeof type === "string" || type === Fragment) props.children = visible(props.children);
  };
}

function visible(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return escapeUnsafe(children);
  return Array.isArray(children) ? children.map(visible) : children;
}
