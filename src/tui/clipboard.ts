/** Terminals drop longer OSC 52 sequences; this is the limit of the most widespread ones, in base64 characters. */
const LONGEST = 74_994;

/**
 * The control sequence OSC 52, which asks the terminal itself to fill the clipboard, so that it also works over SSH and in
 * tmux. `undefined` when the text is longer than terminals accept.
 */
export function clipboardSequence(text: string): string | undefined {
  const encoded = Buffer.from(text).toString("base64");
  return encoded.length > LONGEST ? undefined : `\u001b]52;c;${encoded}\u0007`;
}
