const LINE_FEED = 0x0a;

/** Parses a stream of JSON values, one a line. Lines may be of any length. @throws SyntaxError */
export async function* jsonLines<T>(stream: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
  /** Parts of a line whose end has not arrived. */
  let begun: Uint8Array[] = [];
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      begun.push(chunk.subarray(from, end));
      const line = Buffer.concat(begun).toString("utf8");
      begun = [];
      from = end + 1;
      if (line.trim() !== "") yield JSON.parse(line) as T;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
  }
}
