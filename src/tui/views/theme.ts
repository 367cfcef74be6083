import type { TextProps } from "ink";
import { createContext, useContext } from "react";
import type { Severity } from "../../report/rows.ts";

type Style = Pick<TextProps, "color" | "bold" | "dimColor" | "inverse">;

/** Every style of the view by its role. */
export interface Theme {
  readonly frame: Style;
  readonly activeFrame: Style;
  readonly heading: Style;
  readonly key: Style;
  readonly note: Style;
  readonly added: Style;
  readonly removed: Style;
  readonly selected: Style;
  readonly severity: Readonly<Record<Severity, Style>>;
}

const PLAIN: Theme = {
  frame: { dimColor: true },
  activeFrame: { bold: true },
  heading: { bold: true },
  key: {},
  note: { dimColor: true },
  added: { bold: true },
  removed: { dimColor: true },
  selected: { inverse: true },
  severity: { info: {}, success: {}, warn: { bold: true }, error: { bold: true } },
};

const COLORED: Theme = {
  ...PLAIN,
  activeFrame: { color: "cyan" },
  key: { color: "cyan" },
  added: { color: "green" },
  removed: { color: "red" },
  severity: { info: {}, success: { color: "green" }, warn: { color: "yellow" }, error: { color: "red" } },
};

/** Without color (https://no-color.org) weight and inversion remain. */
export function themeOf(color: boolean): Theme {
  return color ? COLORED : PLAIN;
}

export const ThemeContext = createContext<Theme>(PLAIN);

export function useTheme(): Theme {
  return useContext(ThemeContext);
}
