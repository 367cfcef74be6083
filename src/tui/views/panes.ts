import { Box, Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import { KEY } from "../../report/detail.ts";
import { outcomeOf } from "../../report/outcome.ts";
import { clip, columnsOf, fit } from "../../report/text.ts";
import type { KeyHelp } from "../keys.ts";
import { type Area, box, listHeader, listLine } from "../layout.ts";
import { detail, layout, listColumns, type State, type WrappedLine, wrappedDetail } from "../reducer.ts";
import { type Theme, useTheme } from "./theme.ts";

/** The parts of the screens: header, framed panes, and the lines below them. */

/** Two lines above the panes: the request with its status and duration; its route and what decided. */
export function Header({ state }: { readonly state: State }): ReactNode {
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

interface PaneProps {
  readonly state: State;
  /** The keys go to this pane. */
  readonly active: boolean;
}

/** The list of events. */
export function EventsPane({ state, active }: PaneProps): ReactNode {
  const theme = useTheme();
  const area = layout(state).events;
  const visible = Math.max(1, area.lines - 1);
  const columns = listColumns(state);
  const rows = state.listed.slice(state.eventsTop, state.eventsTop + visible).map((row, offset) => {
    const index = state.eventsTop + offset;
    const selected = index === state.selected;
    const style = selected && active ? theme.selected : selected ? { bold: true } : {};
    const line = fit(listLine(row, columns, selected), area.textWidth);
    return h(Text, { key: index, ...theme.severity[row.severity], ...style }, line);
  });
  const header = fit(listHeader(columns), area.textWidth);
  return h(Frame, {
    area,
    title: `Events ${state.title}`,
    position: positionOf(state.eventsTop, visible, state.listed.length),
    active,
    lines: [h(Text, { key: "header", ...theme.heading }, header), ...rows],
  });
}

/** The selected event in one of the detail modes. */
export function DetailPane({ state, active }: PaneProps): ReactNode {
  const theme = useTheme();
  const area = layout(state).detail;
  const lines = wrappedDetail(state);
  const visible = lines.slice(state.detailTop, state.detailTop + area.lines);
  return h(Frame, {
    area,
    title: detail(state).title,
    position: positionOf(state.detailTop, area.lines, lines.length),
    active,
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

interface HelpProps {
  readonly help: readonly KeyHelp[];
  readonly width: number;
  readonly height: number;
}

/** The list of keys, in place of the panes. */
export function HelpPane({ help, width, height }: HelpProps): ReactNode {
  const theme = useTheme();
  const area = box(width, height);
  const column = Math.max(...help.map(({ keys }) => keys.length));
  const lines = help.slice(0, area.lines).map(({ keys, does }) => {
    const text = fit(`${keys.padEnd(column)}  ${does}`, area.textWidth);
    return h(Text, { key: keys }, h(Text, theme.key, text.slice(0, column)), text.slice(column));
  });
  return h(Frame, {
    area,
    title: "Keys",
    position: "any key closes",
    active: true,
    lines,
  });
}

interface FooterProps {
  readonly help: readonly KeyHelp[];
  readonly width: number;
  /** The terminal is low: there is no line of keys. */
  readonly compact: boolean;
  readonly typing: boolean;
  readonly status: string;
}

/** The most important keys, and the status. */
export function Footer({ help, width, compact, typing, status }: FooterProps): ReactNode {
  const theme = useTheme();
  // Without the line of keys, the status line shows how to open the help.
  const line = compact && !typing ? `${status} · ?: help` : status;
  return h(
    Box,
    { flexDirection: "column" },
    compact ? null : h(Text, { ...theme.note, wrap: "truncate-end" }, fit(keyLine(help, width), width)),
    h(Text, { wrap: "truncate-end" }, fit(` ${line}`, width)),
  );
}

/** As many keys as fit. */
function keyLine(help: readonly KeyHelp[], width: number): string {
  let line = "";
  for (const { short } of help) {
    if (short !== undefined && line.length + short.length + 3 <= width) line += `${line === "" ? " " : "   "}${short}`;
  }
  return line;
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
export function Frame({ area, title, position, active, lines }: FrameProps): ReactNode {
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
export function positionOf(top: number, visible: number, total: number): string {
  return total <= visible ? "" : `${top + 1}–${Math.min(top + visible, total)} of ${total}`;
}
