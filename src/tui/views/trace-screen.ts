import { Box, type Key, Text, useInput } from "ink";
import { createElement as h, type ReactNode } from "react";
import { layout, type State, statusText } from "../reducer.ts";
import { fit } from "../text.ts";
import { DetailPane } from "./detail-pane.ts";
import { EventsPane } from "./events-pane.ts";
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
    h(
      Box,
      { flexDirection: "column" },
      h(
        Box,
        { flexDirection: layout(state).stacked ? "column" : "row" },
        h(EventsPane, { state }),
        h(DetailPane, { state }),
      ),
      h(Footer, { state }),
    ),
  );
}

function Footer({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const width = state.size.columns;
  const keys = `q: quit   tab: pane   ↑↓: scroll   e/s/d: raw/snapshot/diff   f: ${state.format}   c: copy`;
  return h(
    Box,
    { flexDirection: "column" },
    h(Text, { ...theme.note, wrap: "truncate-end" }, fit(` ${keys}`, width)),
    h(Text, { wrap: "truncate-end" }, fit(` ${state.notice ?? statusText(state)}`, width)),
  );
}
