import { bytesOf } from "../src/report/bodies.ts";
import type { Reading } from "../src/report/detail.ts";
import type { Row } from "../src/report/rows.ts";
import { valueText } from "./value-text.ts";

/** Bytes of a decoded body at most: a compressed one may be a thousand times smaller. */
const MOST = 4 * 1024 * 1024;
/** What browsers decode. */
const FORMATS: Readonly<Record<string, CompressionFormat>> = { gzip: "gzip", deflate: "deflate" };

/** The bodies of a trace without their content-encodings. Browsers decode while others wait, so this happens before a body is shown. */
export class TraceBodies {
  readonly #decoded = new Map<string, Uint8Array>();

  /** How a page writes the values and bodies of the trace. */
  readonly reading: Reading = { write: valueText, decompress: (base64) => this.#decoded.get(base64) };

  /** Decodes the body in a row, if it has one. */
  async add({ message, encodings }: Row): Promise<void> {
    const { type, stage, body } = message;
    if (type !== "bodySnapshot" || typeof body !== "string") return;
    const format = FORMATS[stage === "response" ? encodings.response : encodings.request];
    const bytes = format === undefined ? undefined : await decode(bytesOf(body), format);
    if (bytes !== undefined) this.#decoded.set(body, bytes);
  }
}

/** Of a body that was cut short, what it holds; undefined if it holds nothing, or too much. */
async function decode(bytes: Uint8Array<ArrayBuffer>, format: CompressionFormat): Promise<Uint8Array | undefined> {
  const decoder = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format)).getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    while (length <= MOST) {
      const { done, value } = await decoder.read();
      if (done) break;
      pieces.push(value);
      length += value.length;
    }
  } catch {
    // The end is missing, or these are not such bytes.
  }
  void decoder.cancel().catch(() => {});
  return length === 0 || length > MOST ? undefined : new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
}
