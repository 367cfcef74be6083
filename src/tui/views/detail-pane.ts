import { Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import { KEY } from "../detail.ts";
import { detail, layout, type State, type WrappedLine, wrappedDetail } from "../reducer.ts";
import { fit } from "../text.ts";
import { Frame, positionOf } from "./frame.ts";
import { type Theme, useTheme } from "./theme.ts";

/** The selected event in one of the detail modes. */
export function DetailPane({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const area = layout(state).detail;
  const lines = wrappedDetail(state);
  const visible = lines.slice(state.detailTop, state.detailTop + area.lines);
  return h(Frame, {
    area,
    title: detail(state).title,
    position: positionOf(state.detailTop, area.lines, lines.length),
    active: state.pane === "detail",
    // biome-ignore lint/correctness/noChildrenProp: there is no JSX here, and the children are a list by contract
    children: visible.map((line, index) =>
      detailLine(line, state.detailTop + index, area.textWidth, theme, state.foundLine === state.detailTop + index),
    ),
  });
}

function detailLine(line: WrappedLine, key: number, width: number, theme: Theme, found: boolean): ReactNode {
  const text = fit(line.text, width);
  if (found) return h(Text, { key, ...theme.selected }, text);
  if (line.note) return h(Text, { key, ...theme.note }, text);
  if (line.sign !== undefined) return h(Text, { key, ...(line.sign === "+" ? theme.added : theme.removed) }, text);
  const match = line.continued ? null : KEY.exec(text);
  if (match === null) return h(Text, { key }, text);
  const [all, before = "", name = "", colon = ""] = match;
  return h(Text, { key }, before, h(Text, theme.key, name), colon, text.slice(all.length));
}
