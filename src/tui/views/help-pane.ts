import { Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import { HELP } from "../keys.ts";
import type { Box } from "../layout.ts";
import { fit } from "../text.ts";
import { Frame } from "./frame.ts";
import { useTheme } from "./theme.ts";

/** The list of keys, in place of both panes. */
export function HelpPane({ area }: { readonly area: Box }): ReactNode {
  const theme = useTheme();
  const width = Math.max(...HELP.map(({ keys }) => keys.length));
  const lines = HELP.slice(0, area.lines).map(({ keys, does }) => {
    const text = fit(`${keys.padEnd(width)}  ${does}`, area.textWidth);
    return h(Text, { key: keys }, h(Text, theme.key, text.slice(0, width)), text.slice(width));
  });
  return h(Frame, {
    area,
    title: "Keys",
    position: "any key closes",
    active: true,
    // biome-ignore lint/correctness/noChildrenProp: there is no JSX here, and the children are a list by contract
    children: lines,
  });
}
