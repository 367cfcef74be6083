import { Box, type Key, Text, useInput } from "ink";
import { createElement as h, type ReactNode } from "react";
import { HELP } from "../keys.ts";
import { layout, type State, statusText } from "../reducer.ts";
import { fit } from "../text.ts";
import { DetailPane } from "./detail-pane.ts";
import { EventsPane } from "./events-pane.ts";
import { Header } from "./header.ts";
import { HelpPane } from "./help-pane.ts";
import { type Theme, ThemeContext, useTheme } from "./theme.ts";

export interface TraceScreenProps {
  readonly state: State;
  readonly theme: Theme;
  readonly onInput: (input: string, key: Key) => void;
}

/** The whole screen of the trace view: two panes, the keys, the status. */
export function TraceScreen({ state, theme, onInput }: TraceScreenProps): ReactNode {
  useInput(onInput);
  return h(
    ThemeContext.Provider,
    { value: theme },
    h(Box, { flexDirection: "column" }, h(Header, { state }), h(Panes, { state }), h(Footer, { state })),
  );
}

function Panes({ state }: { readonly state: State }): ReactNode {
  const { stacked, events, detail } = layout(state);
  if (state.help) {
    const width = stacked ? events.width : events.width + detail.width;
    const height = stacked ? events.height + detail.height : events.height;
    return h(HelpPane, { area: { width, height, textWidth: width - 4, lines: height - 2 } });
  }
  return h(Box, { flexDirection: stacked ? "column" : "row" }, h(EventsPane, { state }), h(DetailPane, { state }));
}

function Footer({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const width = state.size.columns;
  const { compact } = layout(state);
  // Without the line of keys, the status line says how to see them.
  const status = compact && !state.typing ? `${statusText(state)} · ?: help` : statusText(state);
  return h(
    Box,
    { flexDirection: "column" },
    compact ? null : h(Text, { ...theme.note, wrap: "truncate-end" }, fit(keyLine(width), width)),
    h(Text, { wrap: "truncate-end" }, fit(` ${status}`, width)),
  );
}

/** As many keys as fit. */
function keyLine(width: number): string {
  let line = "";
  for (const { short } of HELP) {
    if (short !== undefined && line.length + short.length + 3 <= width) line += `${line === "" ? " " : "   "}${short}`;
  }
  return line;
}
