import { Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import { listHeader, listLine } from "../list.ts";
import { layout, type State } from "../reducer.ts";
import { fit } from "../text.ts";
import { Frame, positionOf } from "./frame.ts";
import { useTheme } from "./theme.ts";

/** The list of events. */
export function EventsPane({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const area = layout(state).events;
  const visible = Math.max(1, area.lines - 1);
  const rows = state.rows.slice(state.eventsTop, state.eventsTop + visible).map((row, offset) => {
    const index = state.eventsTop + offset;
    const selected = index === state.selected;
    const style = selected && state.pane === "events" ? theme.selected : selected ? { bold: true } : {};
    const line = fit(listLine(state.rows, index, selected), area.textWidth);
    return h(Text, { key: index, ...theme.severity[row.severity], ...style }, line);
  });
  const header = fit(listHeader(state.rows), area.textWidth);
  return h(Frame, {
    area,
    title: `Events ${state.title}`,
    position: positionOf(state.eventsTop, visible, state.rows.length),
    active: state.pane === "events",
    // biome-ignore lint/correctness/noChildrenProp: there is no JSX here, and the children are a list by contract
    children: [h(Text, { key: "header", ...theme.heading }, header), ...rows],
  });
}
