/** Reads the Markdown that docs/ is written in: headings, paragraphs, flat lists, tables, blocks of code, and text with code, emphasis and links. */
import type { Block, Inline } from "../../ui/documents.ts";

/** Where a link leads in the place that shows the text; undefined: the link becomes plain text. */
export type Resolve = (target: string) => string | undefined;

/** The blocks of a page. HTML comments are left out, pictures and images are shown by their description, anything else unknown as it is written. */
export function readMarkdown(text: string, resolve: Resolve): Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  const inline = (source: string): Inline[] => inlinesOf(source, resolve);
  /** Takes the lines that follow as long as they fit. */
  const take = (fits: (line: string) => boolean): string[] => {
    const end = lines.findIndex((line) => !fits(line));
    return lines.splice(0, end === -1 ? lines.length : end);
  };
  for (let line = lines[0]; line !== undefined; line = lines[0]) {
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (line.trim() === "") {
      lines.shift();
    } else if (line.startsWith("<!--")) {
      take((each) => !each.includes("-->"));
      lines.shift();
    } else if (line.startsWith("<picture>")) {
      const picture = take((each) => !each.includes("</picture>")).join(" ");
      lines.shift();
      blocks.push({ paragraph: inline(/\salt="([^"]*)"/.exec(picture)?.[1] ?? "") });
    } else if (heading !== null) {
      const [, signs = "", words = ""] = heading;
      lines.shift();
      blocks.push({ heading: signs.length, id: anchorOf(words), text: inline(words) });
    } else if (line.startsWith("```")) {
      lines.shift();
      blocks.push({ code: take((each) => !each.startsWith("```")).join("\n") });
      lines.shift();
    } else if (line.startsWith("|")) {
      const [head = "", , ...rows] = take((each) => each.startsWith("|"));
      blocks.push({ table: [head, ...rows].map((row) => cellsOf(row).map(inline)) });
    } else if (ITEM.test(line)) {
      const ordered = /^\d/.test(line);
      const list = take((each) => ITEM.test(each) || /^\s+\S/.test(each));
      blocks.push({ list: itemsOf(list).map(inline), ordered });
    } else {
      // The first line always belongs to it.
      const [first = "", ...others] = [lines.shift() ?? "", ...take((each) => !STARTS_BLOCK.test(each))];
      blocks.push({ paragraph: inline([first, ...others].join(" ")) });
    }
  }
  return blocks;
}

const ITEM = /^\s*(?:[-*]|\d+\.)\s+/;
const STARTS_BLOCK = /^(?:\s*$|#{1,6}\s|```|\||<!--|<picture>|[-*]\s|\d+\.\s)/;

/** The anchor that a heading gets: lower-case, punctuation gone, spaces to hyphens. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

/** Items may be continued on indented lines. */
function itemsOf(lines: readonly string[]): string[] {
  const items: string[] = [];
  for (const line of lines)
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items.push(`${items.pop() ?? ""} ${line.trim()}`);
  return items;
}

function cellsOf(row: string): string[] {
  const cells = row
    .trim()
    .replace(/^\|/, "")
    .replace(/\|$/, "")
    .split(/(?<!\\)\|/);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** Code, links and images, strong and emphasized text, escaped characters and line breaks; whatever comes first. */
const SPECIAL =
  /(?<ticks>`+)(?<code>.+?)\k<ticks>|(?<image>!?)\[(?<label>(?:[^[\]]|\[[^\]]*\])*)\]\((?<target>[^)\s]+)\)|\*\*(?<strong>.+?)\*\*|(?<![\w*])\*(?<em>[^\s*][^*]*)\*|\\(?<escaped>[\\`*_[\]<>|])|<br>/g;

function inlinesOf(text: string, resolve: Resolve): Inline[] {
  const found: Inline[] = [];
  let end = 0;
  const add = (more: Inline): void => {
    const last = found.at(-1);
    if (typeof more !== "string" || typeof last !== "string") found.push(more);
    else found[found.length - 1] = last + more;
  };
  const plain = (more: string): void => {
    if (more !== "") add(more);
  };
  for (const match of text.matchAll(SPECIAL)) {
    const { code, image, label = "", target = "", strong, em, escaped } = match.groups ?? {};
    plain(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (code !== undefined) add({ code });
    else if (strong !== undefined) add({ strong: inlinesOf(strong, resolve) });
    else if (em !== undefined) add({ em: inlinesOf(em, resolve) });
    else if (escaped !== undefined) plain(escaped);
    else if (match[0] === "<br>") plain("\n");
    else {
      const link = image === "" ? resolve(target) : undefined;
      const inner = inlinesOf(label, resolve);
      if (link === undefined) inner.forEach(add);
      else add({ link, text: inner });
    }
  }
  plain(text.slice(end));
  return found;
}
