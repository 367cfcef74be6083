/** Levels of indentation; deeper lines are indented like the last. */
export const TREE_LEVELS = 9;

const LEVELS = Array.from({ length: TREE_LEVELS + 1 }, (_, i) => `.level${i}{padding-left:${i * 1.6 + 1.2}em}`).join(
  "\n",
);

/** The style of the page. The policy of the page contains its digest, so nothing can be added to it later. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --back: light-dark(#fff, #14171c); --panel: light-dark(#f5f6f8, #1d2128); --line: light-dark(#dcdfe5, #333a45);
  --text: light-dark(#1c2128, #e3e7ee); --quiet: light-dark(#5a6472, #98a2b0);
  --good: light-dark(#1a7a3c, #5bd184); --bad: light-dark(#c01f2e, #ff7b84); --warn: light-dark(#8a5a00, #e8b04a);
  --step: light-dark(#9aa5b4, #66707f); --dns: light-dark(#8b5cf6, #a78bfa); --connect: light-dark(#d97706, #f0a94e);
  --tls: light-dark(#b8348f, #e879c6); --call: light-dark(#2563eb, #6ea2ff);
  --added: light-dark(#dcf5e3, #17361f); --removed: light-dark(#fde4e6, #431c22);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
header { padding: 1.2em 2em .8em; background: var(--panel); border-bottom: 1px solid var(--line); }
main { padding: 0 2em 2em; }
h1 { margin: 0 0 .5em; font-size: 1.35em; font-weight: 600; }
h1 span { color: var(--good); white-space: nowrap; }
h1.error span { color: var(--bad); }
h1.warn span { color: var(--warn); }
h2 { font-size: 1.1em; margin: 1.6em 0 .5em; }
h3 { font-size: 1em; margin: .6em 0 .3em; color: var(--quiet); font-weight: 600; }
dl { margin: 0; display: flex; flex-wrap: wrap; gap: .2em 2em; }
dl div { display: flex; gap: .5em; }
dt, .note, small, .number { color: var(--quiet); }
dt { white-space: nowrap; }
dd { margin: 0; }
ul, ol { margin: 0; padding: 0; list-style: none; }
.tree, pre, .time, .summary { font-family: ui-monospace, monospace; font-size: .93em; }
.tree { border: 1px solid var(--line); border-radius: 6px; padding: .5em; background: var(--panel); }
.tree li { text-indent: -1.2em; padding-block: 1px; white-space: pre-wrap; }
.yes b { color: var(--good); }
.no b { color: var(--bad); }
.unknown b { color: var(--warn); }
.more, .skipped, .notReached { color: var(--quiet); }
.tree .more { text-indent: 0; }
${LEVELS}
.events { border: 1px solid var(--line); border-radius: 6px; }
.events > li + li { border-top: 1px solid var(--line); }
.events > .note { padding: .3em .8em; }
summary { display: grid; grid-template-columns: 3em 5.5em 9em minmax(0, 1fr) minmax(6em, 28%); gap: .8em; padding: .25em .8em; cursor: pointer; align-items: center; }
summary:hover, details[open] > summary { background: var(--panel); }
summary:focus-visible { outline: 2px solid var(--call); outline-offset: -2px; }
.number, .time { text-align: right; }
.number::before { content: "▸"; float: left; }
[open] > summary .number::before { content: "▾"; }
.error .label, .error .summary { color: var(--bad); }
.warn .label, .warn .summary { color: var(--warn); }
.decider .summary { font-weight: 700; }
svg { width: 100%; height: 12px; background: var(--panel); border-radius: 2px; display: block; }
.step { fill: var(--step); background: var(--step); }
.dns { fill: var(--dns); background: var(--dns); }
.connect { fill: var(--connect); background: var(--connect); }
.tls { fill: var(--tls); background: var(--tls); }
.call { fill: var(--call); background: var(--call); }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
pre { margin: 0 0 .8em; padding: .6em .8em; background: var(--panel); border-radius: 6px; white-space: pre-wrap; }
details > h3, details > pre { margin-inline: .8em; }
ins, del { text-decoration: none; display: inline-block; width: 100%; }
ins { background: var(--added); }
del { background: var(--removed); }
pre i { color: var(--quiet); }
@media (max-width: 700px) {
  header, main { padding-inline: .8em; }
  summary { grid-template-columns: 2.5em 5em 1fr; }
  .summary, svg { grid-column: 1 / -1; }
}
@media print { details::details-content { content-visibility: visible; } }
`;
