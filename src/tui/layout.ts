export type Pane = "events" | "detail";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A framed pane: outer width and height, and how many lines and columns of text fit inside. */
export interface Box {
  readonly width: number;
  readonly height: number;
  readonly textWidth: number;
  readonly lines: number;
}

export interface Layout {
  readonly stacked: boolean;
  readonly events: Box;
  readonly detail: Box;
}

/** Below this width two panes side by side would cut most summaries. */
const SIDE_BY_SIDE = 110;
/** Status and key lines. */
const FOOTER = 2;

/**
 * Where the panes go: side by side at 3 to 2 on a wide terminal, else one above the other with more room for the one in
 * use. The last row of the terminal stays free, because output that fills the screen makes the renderer clear the
 * terminal's scrollback.
 */
export function layoutOf(size: Size, active: Pane): Layout {
  const width = Math.max(size.columns, 20);
  const height = Math.max(size.rows - 1 - FOOTER, 6);
  if (width >= SIDE_BY_SIDE) {
    const events = Math.floor((width * 3) / 5);
    return { stacked: false, events: box(events, height), detail: box(width - events, height) };
  }
  const share = active === "events" ? 0.55 : 0.3;
  const events = Math.max(3, Math.round(height * share));
  return { stacked: true, events: box(width, events), detail: box(width, height - events) };
}

function box(width: number, height: number): Box {
  return { width, height, textWidth: Math.max(1, width - 4), lines: Math.max(1, height - 2) };
}
