import { RE2JSSyntaxException } from "re2js";
import { messageOf } from "./errors.ts";

/** Perl's assertions and groups that RE2 leaves out, because to match them can take exponential time. */
const LOOK_AROUND = /^\(\?<?(?<sign>[=!])/;
const BACK_REFERENCE = /^\\(?:[1-9]|k)/;
const GREEDY_FOR_GOOD = /^(?:\(\?>|[*+?}]\+$)/;

/** Why RE2 does not take a pattern, and what to write instead. `error` is what `RE2JS.compile` threw. */
export function patternProblem(error: unknown): string {
  if (!(error instanceof RE2JSSyntaxException)) return `${messageOf(error)}; write it in RE2 syntax`;
  const piece = error.getPattern() ?? "";
  const lookAround = LOOK_AROUND.exec(piece);
  if (lookAround !== null) {
    const what = lookAround.groups?.sign === "!" ? "excludes" : "looks for";
    return `RE2 has no look-around, \`${lookAround[0]}\`; leave it out, and match what it ${what} by a route or condition of its own`;
  }
  if (BACK_REFERENCE.test(piece))
    return `RE2 cannot refer back to a group, \`${piece}\`; write out the texts that may be repeated`;
  if (GREEDY_FOR_GOOD.test(piece))
    return `RE2 never backtracks, so it has no \`${piece}\`; write ${piece === "(?>" ? "(?:" : piece.slice(0, -1)}`;
  return `${error.getDescription()}${piece === "" ? "" : `: \`${piece}\``}; write it in RE2 syntax`;
}
