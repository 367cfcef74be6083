import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Pixels of a row, as `--row` in style.css. */
const ROW = 24;
/** Rows beyond either edge, so that scrolling by a few shows no gap. */
const MARGIN = 8;

interface VirtualListProps {
  readonly label: string;
  readonly count: number;
  /** The row that stays visible; -1: none. */
  readonly chosen: number;
  /** The row has the focus of the keyboard. */
  readonly focused: boolean;
  /** A row at this distance from the top, in pixels. It is a link, so that it opens like one. */
  readonly row: (index: number, top: number) => VNode;
}

/** A list of rows of one height, of which only those in the window exist. */
export function VirtualList({ label, count, chosen, focused, row }: VirtualListProps): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 0 });
  const look = (): void => {
    const { scrollTop: top = 0, clientHeight: height = 0 } = box.current ?? {};
    setView((before) => (before.top === top && before.height === height ? before : { top, height }));
  };
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(look);
    if (box.current !== null) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || chosen < 0) return;
    const top = chosen * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
    look();
  }, [chosen]);
  // After the row exists, which it may not do before the list has scrolled.
  useEffect(() => {
    if (focused) box.current?.querySelector<HTMLElement>("[data-chosen]")?.focus({ preventScroll: true });
  }, [chosen, focused, view]);
  const first = Math.max(0, Math.floor(view.top / ROW) - MARGIN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / ROW) + MARGIN);
  return (
    <section class="list" ref={box} onScroll={look} aria-label={label} tabIndex={count === 0 ? -1 : 0}>
      <ol style={{ height: `${count * ROW}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, i) => row(first + i, (first + i) * ROW))}
      </ol>
    </section>
  );
}
