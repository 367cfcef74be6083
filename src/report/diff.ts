/** A line of a diff: only before, only after, or in both. */
export interface DiffLine {
  readonly sign: "-" | "+" | " ";
  readonly text: string;
}

/** Largest table of lines, in cells. Beyond it, which no snapshot reaches, the diff replaces everything. */
const MAX_TABLE = 16 * 1024 * 1024;

/** Line diff by longest common subsequence. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  const width = after.length + 1;
  if ((before.length + 1) * width > MAX_TABLE) {
    return [
      ...before.map((text): DiffLine => ({ sign: "-", text })),
      ...after.map((text): DiffLine => ({ sign: "+", text })),
    ];
  }
  // common[i * width + j]: length of the longest common subsequence of before[i..] and after[j..]
  const common = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    const old = before[i];
    const now = after[j];
    if (old !== undefined && old === now) {
      lines.push({ sign: " ", text: old });
      i += 1;
      j += 1;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: "-", text: old });
      i += 1;
    } else if (now !== undefined) {
      lines.push({ sign: "+", text: now });
      j += 1;
    }
  }
  return lines;
}
