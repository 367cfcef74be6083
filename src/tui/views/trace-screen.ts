import { Box, type Key, Text, useInput } from "ink";
import { createElement as h, type ReactNode } from "react";
import { KEY } from "../../report/detail.ts";
import { outcomeOf } from "../../report/outcome.ts";
import { clip, columnsOf, fit } from "../../report/text.ts";
import { HELP } from "../keys.ts";
import { type Area, columnsFor, listHeader, listLine } from "../layout.ts";
import { detail, layout, type State, statusText, type WrappedLine, wrappedDetail } from "../reducer.ts";
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
  // Without the line of keys, the status line shows how to open the help.
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

/** Two lines above the panes: the request with its status and duration; its route and what decided. */
function Header({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const width = Math.max(state.size.columns, 20);
  const { request, status, duration, route, why, severity } = outcomeOf(state.rows);
  const end = [status, duration].filter(Boolean).join("  ");
  const room = Math.max(1, width - 3 - columnsOf(end));
  const reason = [route === "" ? "" : `route ${route}`, why].filter(Boolean).join(" · ");
  const known = { bold: true, ...theme.severity[severity] };
  return h(
    Box,
    { flexDirection: "column" },
    h(
      Text,
      { wrap: "truncate-end" },
      " ",
      h(Text, theme.heading, fit(request === "" ? (state.progress ?? "no request yet") : request, room)),
      " ",
      h(Text, known, end),
    ),
    h(Text, { ...theme.severity[severity], wrap: "truncate-end" }, fit(` ${reason}`, width)),
  );
}

/** The list of events. */
function EventsPane({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const area = layout(state).events;
  const visible = Math.max(1, area.lines - 1);
  const columns = columnsFor(state.rows.at(-1));
  const rows = state.listed.slice(state.eventsTop, state.eventsTop + visible).map((row, offset) => {
    const index = state.eventsTop + offset;
    const selected = index === state.selected;
    const style = selected && state.pane === "events" ? theme.selected : selected ? { bold: true } : {};
    const line = fit(listLine(row, columns, selected), area.textWidth);
    return h(Text, { key: index, ...theme.severity[row.severity], ...style }, line);
  });
  const header = fit(listHeader(columns), area.textWidth);
  return h(Frame, {
    area,
    title: `Events ${state.title}`,
    position: positionOf(state.eventsTop, visible, state.listed.length),
    active: state.pane === "events",
    lines: [h(Text, { key: "header", ...theme.heading }, header), ...rows],
  });
}

/** The selected event in one of the detail modes. */
function DetailPane({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const area = layout(state).detail;
  const lines = wrappedDetail(state);
  const visible = lines.slice(state.detailTop, state.detailTop + area.lines);
  return h(Frame, {
    area,
    title: detail(state).title,
    position: positionOf(state.detailTop, area.lines, lines.length),
    active: state.pane === "detail",
    lines: visible.map((line, index) =>
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

/** The list of keys, in place of both panes. */
function HelpPane({ area }: { readonly area: Area }): ReactNode {
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
    lines,
  });
}

interface FrameProps {
  readonly area: Area;
  readonly title: string;
  /** Shown in the lower edge: which part of the content is visible. */
  readonly position: string;
  readonly active: boolean;
  /** At most `area.lines` lines, each exactly `area.textWidth` columns wide. */
  readonly lines: readonly ReactNode[];
}

/** A pane with its title in the upper edge. */
function Frame({ area, title, position, active, lines }: FrameProps): ReactNode {
  const theme = useTheme();
  const edge = active ? theme.activeFrame : theme.frame;
  const inner = area.width - 2;
  const side = h(Text, edge, "│");
  const head = clip(title, inner - 4);
  const blank = fit("", area.textWidth);
  const rows = Array.from({ length: area.lines }, (_, index) =>
    h(Text, { key: index, wrap: "truncate-end" }, side, " ", lines[index] ?? blank, " ", side),
  );
  const foot = position === "" ? "" : ` ${position} `;
  return h(
    Box,
    { flexDirection: "column", width: area.width, height: area.height },
    h(
      Text,
      { ...edge, wrap: "truncate-end" },
      "╭─ ",
      h(Text, { bold: active }, head),
      ` ${"─".repeat(Math.max(0, inner - 3 - head.length))}╮`,
    ),
    ...rows,
    h(Text, { ...edge, wrap: "truncate-end" }, `╰${"─".repeat(Math.max(0, inner - 1 - foot.length))}${foot}─╯`),
  );
}

/** `3–9 of 42`, or nothing when everything is visible. */
function positionOf(top: number, visible: number, total: number): string {
  return total <= visible ? "" : `${top + 1}–${Math.min(top + visible, total)} of ${total}`;
}
