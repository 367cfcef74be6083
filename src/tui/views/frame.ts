import { Box, Text } from "ink";
import { createElement as h, type ReactNode } from "react";
import type { Box as Area } from "../layout.ts";
import { clip, fit } from "../text.ts";
import { useTheme } from "./theme.ts";

export interface FrameProps {
  readonly area: Area;
  readonly title: string;
  /** Shown in the lower edge: which part of the content is visible. */
  readonly position: string;
  readonly active: boolean;
  /** At most `area.lines` lines, each exactly `area.textWidth` columns wide. */
  readonly children: readonly ReactNode[];
}

/** A pane with its title in the upper edge. */
export function Frame({ area, title, position, active, children }: FrameProps): ReactNode {
  const theme = useTheme();
  const edge = active ? theme.activeFrame : theme.frame;
  const inner = area.width - 2;
  const side = h(Text, edge, "│");
  const head = clip(title, inner - 4);
  const blank = fit("", area.textWidth);
  const lines = Array.from({ length: area.lines }, (_, index) =>
    h(Text, { key: index, wrap: "truncate-end" }, side, " ", children[index] ?? blank, " ", side),
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
    ...lines,
    h(Text, { ...edge, wrap: "truncate-end" }, `╰${"─".repeat(Math.max(0, inner - 1 - foot.length))}${foot}─╯`),
  );
}

/** `3–9 of 42`, or nothing when everything is visible. */
export function positionOf(top: number, visible: number, total: number): string {
  return total <= visible ? "" : `${top + 1}–${Math.min(top + visible, total)} of ${total}`;
}
