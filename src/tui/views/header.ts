import { Box, Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import type { State } from "../reducer.ts";
import { columnsOf, fit } from "../text.ts";
import { verdictOf } from "../verdict.ts";
import { useTheme } from "./theme.ts";

/** Two lines above the panes: the request with its status and duration, then its route and what decided. */
export function Header({ state }: { readonly state: State }): ReactNode {
  const theme = useTheme();
  const width = Math.max(state.size.columns, 20);
  const { request, status, duration, route, why, severity } = verdictOf(state.rows);
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
      h(Text, theme.heading, fit(request === "" ? "no request yet" : request, room)),
      " ",
      h(Text, known, end),
    ),
    h(Text, { ...theme.severity[severity], wrap: "truncate-end" }, fit(` ${reason}`, width)),
  );
}
