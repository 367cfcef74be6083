import { Box, type Key, useInput } from "ink";
import { createElement as h, type ReactNode } from "react";
import { HELP } from "../keys.ts";
import { layout, type State, statusText } from "../reducer.ts";
import { DetailPane, EventsPane, Footer, Header, HelpPane } from "./panes.ts";
import { type Theme, ThemeContext } from "./theme.ts";

export interface ScreenProps<S> {
  readonly state: S;
  readonly theme: Theme;
  readonly onInput: (input: string, key: Key) => void;
}

/** The whole screen of the trace view: two panes, the keys, the status. */
export function TraceScreen({ state, theme, onInput }: ScreenProps<State>): ReactNode {
  useInput(onInput);
  const { compact } = layout(state);
  return h(
    ThemeContext.Provider,
    { value: theme },
    h(
      Box,
      { flexDirection: "column" },
      h(Header, { state }),
      h(Panes, { state }),
      h(Footer, { help: HELP, width: state.size.columns, compact, typing: state.typing, status: statusText(state) }),
    ),
  );
}

function Panes({ state }: { readonly state: State }): ReactNode {
  const { stacked, events, detail } = layout(state);
  if (state.help) {
    const width = stacked ? events.width : events.width + detail.width;
    return h(HelpPane, { help: HELP, width, height: stacked ? events.height + detail.height : events.height });
  }
  return h(
    Box,
    { flexDirection: stacked ? "column" : "row" },
    h(EventsPane, { state, active: state.pane === "events" }),
    h(DetailPane, { state, active: state.pane === "detail" }),
  );
}
