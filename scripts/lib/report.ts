/** What one step of `npm run check` found. */
export interface Result {
  /** One line each, `file:line: what is wrong and how to mend it`; empty = the step passes. */
  readonly problems: readonly string[];
  /** What was checked, for the summary: `212 modules, 640 imports`. */
  readonly summary: string;
}

/** Aligns cells by column; numbers to the right. The first row is the header. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => String(row[column] ?? "").length)));
  const line = (row: readonly (string | number)[]): string =>
    row
      .map((cell, column) =>
        typeof cell === "number" ? String(cell).padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}
