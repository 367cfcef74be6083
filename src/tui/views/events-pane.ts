import { Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import { layout, type State } from "../reducer.ts";
import { LABEL_WIDTH } from "../summaries.ts";
import { fit, fitEnds } from "../text.ts";
import { Frame, positionOf } from "./frame.ts";
import { useTheme } from "./theme.ts";

/** The list of events with the columns `#`, `Type` and `Summary`. */
export function EventsPane({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const area = layout(state).events;
  const digits = String(state.rows.length).length;
  const visible = Math.max(1, area.lines - 1);
  const rows = state.rows.slice(state.eventsTop, state.eventsTop + visible).map((row, offset) => {
    const index = state.eventsTop + offset;
    const selected = index === state.selected;
    const style = selected && state.pane === "events" ? theme.selected : selected ? { bold: true } : {};
    const start = `${selected ? "›" : " "}${String(index + 1).padStart(digits)}  ${fit(row.label, LABEL_WIDTH)}  `;
    const shorten = row.message.type === "routeSelection" ? fitEnds : fit;
    const summary = shorten(row.summary, area.textWidth - start.length);
    return h(Text, { key: index, ...theme.severity[row.severity], ...style }, fit(start + summary, area.textWidth));
  });
  const header = ` ${"#".padStart(digits)}  ${"Type".padEnd(LABEL_WIDTH)}  Summary`;
  return h(Frame, {
    area,
    title: `Events ${state.title}`,
    position: positionOf(state.eventsTop, visible, state.rows.length),
    active: state.pane === "events",
    // biome-ignore lint/correctness/noChildrenProp: there is no JSX here, and the children are a list by contract
    children: [h(Text, { key: "header", ...theme.heading }, fit(header, area.textWidth)), ...rows],
  });
}
