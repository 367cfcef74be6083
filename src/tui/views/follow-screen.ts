import { Box, Text, useInput } from "ink";
import { createElement as h, type ReactNode } from "react";
import { fit } from "../../report/text.ts";
import {
  type FollowState,
  followLayoutOf,
  followStatus,
  listedRequests,
  selectedIndex,
  topIndex,
  typingOf,
} from "../follow-reducer.ts";
import { FOLLOW_HELP } from "../keys.ts";
import { requestColumns, requestHeader, requestLine } from "../request-lines.ts";
import { factsOf } from "../requests.ts";
import { DetailPane, EventsPane, Footer, Frame, Header, HelpPane, positionOf } from "./panes.ts";
import { ThemeContext, useTheme } from "./theme.ts";
import type { ScreenProps } from "./trace-screen.ts";

/** The whole screen of the view of many requests, whose state is `settled`. */
export function FollowScreen({ state, theme, onInput }: ScreenProps<FollowState>): ReactNode {
  useInput(onInput);
  const { trace } = state;
  const { compact } = followLayoutOf(state);
  const { typing } = typingOf(state);
  return h(
    ThemeContext.Provider,
    { value: theme },
    h(
      Box,
      { flexDirection: "column" },
      h(Header, { state: trace }),
      h(Panes, { state }),
      h(Footer, { help: FOLLOW_HELP, width: trace.size.columns, compact, typing, status: followStatus(state) }),
    ),
  );
}

function Panes({ state }: { readonly state: FollowState }): ReactNode {
  const { onList, trace } = state;
  const { form, width, height } = followLayoutOf(state);
  if (trace.help) return h(HelpPane, { help: FOLLOW_HELP, width, height });
  const list = h(RequestsPane, { state });
  const events = h(EventsPane, { state: trace, active: !onList && trace.pane === "events" });
  const details = h(DetailPane, { state: trace, active: !onList && trace.pane === "detail" });
  if (form === "columns") return h(Box, { flexDirection: "row" }, list, events, details);
  if (form === "beside")
    return h(Box, { flexDirection: "row" }, list, h(Box, { flexDirection: "column" }, events, details));
  return h(Box, { flexDirection: "column" }, ...(onList ? [list, events] : [events, details]));
}

/** The list of requests. */
function RequestsPane({ state }: { readonly state: FollowState }): ReactNode {
  const theme = useTheme();
  const area = followLayoutOf(state).requests;
  const listed = listedRequests(state);
  const [index, top] = [selectedIndex(state), topIndex(state)];
  const visible = Math.max(1, area.lines - 1);
  const shown = listed.slice(top, top + visible);
  const columns = requestColumns(area.textWidth, shown);
  const rows = shown.map((request, offset) => {
    const selected = top + offset === index;
    const style = selected && state.onList ? theme.selected : selected ? { bold: true } : {};
    const line = fit(requestLine(request, columns, selected), area.textWidth);
    return h(Text, { key: offset, ...theme.severity[factsOf(request).severity], ...style }, line);
  });
  return h(Frame, {
    area,
    title: `Requests ${state.title}`,
    position: positionOf(top, visible, listed.length),
    active: state.onList,
    lines: [h(Text, { key: "header", ...theme.heading }, fit(requestHeader(columns), area.textWidth)), ...rows],
  });
}
