/**
 * The rules that are fuzzed, against nghttp2 in Node: what nghttp2 encodes, we decode to the same fields; what we encode, nghttp2 decodes to
 * the same fields; and of broken blocks both say the same: the same fields, or that the compression is broken.
 */
import { type OutgoingHttpHeaders, sensitiveHeaders } from "node:http2";
import { isDeepStrictEqual } from "node:util";
import { FieldSection, HpackDecoder } from "../../../src/http/h2/hpack/decoder.ts";
import { HpackEncoder } from "../../../src/http/h2/hpack/encoder.ts";
import { Dice } from "../dice.ts";
import { Nghttp2Decoder, Nghttp2Encoder } from "./nghttp2.ts";

const LIMITS = { tableSize: 4096, maxListSize: 2 ** 24, maxFields: 10_000 };
/** Blocks of one connection. */
const BLOCKS = 20;

const NAMES = [
  "accept",
  "accept-encoding",
  "authorization",
  "cookie",
  "etag",
  "grpc-timeout",
  "user-agent",
  "via",
  "x-a",
];
const VALUES = [
  "",
  "*/*",
  "gzip, deflate",
  "a",
  "Basic dGVzdDp0ZXN0",
  "session=0123456789abcdef01234567",
  "\xe4\xff",
  "a\tb",
];
const NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~";
const METHODS = ["GET", "POST", "PUT", "QUERY"];
const SIZES = [0, 1, 32, 64, 100, 1000, 4095, 4096];

/** What both disagree about. */
export interface HpackDisagreement {
  readonly rule: string;
  readonly expected: unknown;
  readonly actual: unknown;
  /** The blocks of the connection so far, as hex. */
  readonly blocks: readonly string[];
}

function name(dice: Dice): string {
  return dice.chance(0.7) ? dice.of(NAMES) : `x-${dice.repeat(20, () => dice.of([...NAME_CHARACTERS]))}`;
}

function value(dice: Dice): string {
  if (dice.chance(0.5)) return dice.of(VALUES);
  const longest = dice.of([3, 30, 300, 5000]);
  // In the middle everything that a value may hold; all codes of Huffman from time to time.
  const middle = dice.repeat(longest, () => {
    const code = dice.chance(0.9) ? 0x20 + dice.below(95) : 0x80 + dice.below(128);
    return String.fromCharCode(code);
  });
  return `${dice.of(["v", "~", "\xe9"])}${middle}${dice.of(["v", "0", "\xff"])}`;
}

/** Pseudo-fields and fields of a request. Names come once each, because Node takes an object. */
function request(dice: Dice): { readonly pseudo: string[]; readonly fields: string[] } {
  const path = dice.of(["/", "/index.html", "/a/b", `/${dice.below(1000)}?q=${dice.below(1000)}`]);
  const pseudo = [
    ":method",
    dice.of(METHODS),
    ":scheme",
    dice.of(["http", "https"]),
    ":path",
    path,
    ":authority",
    "a.b",
  ];
  const fields = new Map<string, string>();
  for (let n = dice.below(10); n > 0; n--) fields.set(name(dice), value(dice));
  return { pseudo, fields: [...fields].flat() };
}

function headersOf(dice: Dice, texts: readonly string[]): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  const secret: string[] = [];
  for (let i = 0; i < texts.length; i += 2) {
    headers[texts[i] as string] = texts[i + 1];
    if (dice.chance(0.1)) secret.push(texts[i] as string);
  }
  return Object.assign(headers, { [sensitiveHeaders]: secret });
}

/** nghttp2 encodes, we decode. */
async function decodesTheirs(dice: Dice): Promise<HpackDisagreement | undefined> {
  using encoder = new Nghttp2Encoder();
  const decoder = new HpackDecoder(LIMITS);
  const section = new FieldSection();
  const blocks: string[] = [];
  for (let n = 0; n < BLOCKS; n++) {
    if (dice.chance(0.2)) {
      await encoder.setTableSize(dice.of(SIZES));
      if (dice.chance(0.3)) await encoder.setTableSize(dice.of(SIZES));
    }
    const { pseudo, fields } = request(dice);
    const sent = [...pseudo, ...fields];
    const block = await encoder.encode(headersOf(dice, sent));
    blocks.push(block.toString("hex"));
    const error = decoder.decode(block, 0, block.length, section);
    const actual = error ?? (section.malformed === "" ? [...section.fields] : section.malformed);
    if (!isDeepStrictEqual(actual, sent)) return { rule: "we decode nghttp2's block", expected: sent, actual, blocks };
  }
  return undefined;
}

/** We encode, nghttp2 decodes. */
async function encodesForThem(dice: Dice): Promise<HpackDisagreement | undefined> {
  const encoder = new HpackEncoder();
  using decoder = new Nghttp2Decoder();
  const blocks: string[] = [];
  for (let n = 0; n < BLOCKS; n++) {
    for (let changes = dice.chance(0.2) ? 1 + dice.below(3) : 0; changes > 0; changes--)
      encoder.setTableSize(dice.of(SIZES));
    const { pseudo, fields } = request(dice);
    const out = Buffer.alloc(encoder.bound(pseudo, fields));
    const block = out.subarray(0, encoder.encode(pseudo, fields, out, 0));
    blocks.push(block.toString("hex"));
    const actual = await decoder.decode(block);
    const expected = { fields: [...pseudo, ...fields] };
    if (!isDeepStrictEqual(actual, expected)) return { rule: "nghttp2 decodes our block", expected, actual, blocks };
  }
  return undefined;
}

/** Both decode blocks that are broken in all ways. */
async function agreesOnBroken(dice: Dice): Promise<HpackDisagreement | undefined> {
  using encoder = new Nghttp2Encoder();
  using theirs = new Nghttp2Decoder();
  const ours = new HpackDecoder(LIMITS);
  const section = new FieldSection();
  const blocks: string[] = [];
  for (let n = 0; n < BLOCKS; n++) {
    let block = dice.chance(0.5)
      ? crafted(dice)
      : await encoder.encode(headersOf(dice, Object.values(request(dice)).flat()));
    if (dice.chance(0.4)) block = damaged(dice, block);
    blocks.push(block.toString("hex"));
    const expected = await theirs.decode(block);
    const error = ours.decode(block, 0, block.length, section);
    const actual = error ?? { fields: [...section.fields], malformed: section.malformed };
    // nghttp2 drops some malformed fields where we refuse the message.
    const agreed =
      typeof expected === "object" && error === undefined
        ? section.malformed !== "" || isDeepStrictEqual(withoutHost(section.fields), withoutHost(expected.fields))
        : (error !== undefined) === (expected === "compression error");
    if (!agreed) return { rule: "both say the same of a block", expected, actual, blocks };
    if (error !== undefined) return undefined;
  }
  return undefined;
}

/** nghttp2 drops a Host that is no authority, which is not for HPACK to judge. */
function withoutHost(fields: readonly string[]): string[] {
  return fields.filter((_, i) => fields[i - (i % 2)] !== "host");
}

/** An integer in the lower bits of `prefix`, with a few useless bytes from time to time. */
function integer(dice: Dice, pattern: number, prefix: number, value: number): number[] {
  if (value < prefix) return [pattern | value];
  const bytes = [pattern | prefix];
  let rest = value - prefix;
  for (let zeros = dice.chance(0.05) ? dice.below(4) : 0; rest >= 0x80 || zeros > 0; zeros--) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  return [...bytes, rest];
}

function string(dice: Dice, text: string): number[] {
  // Most texts are no valid Huffman code.
  const huffman = dice.chance(0.02) ? 0x80 : 0;
  return [...integer(dice, huffman, 0x7f, text.length), ...Buffer.from(text, "latin1")];
}

/** A block of random representations, after the pseudo-fields without which nghttp2 rejects a request at once. */
function crafted(dice: Dice): Buffer {
  const bytes: number[] = [];
  const update = () => integer(dice, 0x20, 0x1f, dice.chance(0.05) ? 4097 + dice.below(99_999) : dice.of(SIZES));
  while (dice.chance(0.2)) bytes.push(...update());
  bytes.push(0x82, 0x84, 0x86, 0x41, ...string(dice, "a.b"));
  for (let n = dice.below(12); n > 0; n--) {
    // 15 to 61 are the fields of the static table; the dynamic one is rarely full.
    const index = dice.chance(0.7) ? 15 + dice.below(50) : dice.below(150);
    if (dice.chance(0.4)) bytes.push(...integer(dice, 0x80, 0x7f, index));
    else {
      const [pattern, prefix] = dice.of([
        [0x40, 0x3f] as const,
        [0x40, 0x3f] as const,
        [0, 0x0f] as const,
        [0x10, 0x0f] as const,
      ]);
      if (dice.chance(0.5)) bytes.push(...integer(dice, pattern, prefix, index));
      else bytes.push(pattern, ...string(dice, name(dice)));
      bytes.push(...string(dice, value(dice)));
    }
    if (dice.chance(0.01)) bytes.push(...update());
  }
  return Buffer.from(bytes);
}

function damaged(dice: Dice, block: Buffer): Buffer {
  const at = dice.below(block.length);
  const copy = Buffer.from(block);
  switch (dice.below(4)) {
    case 0:
      return block.subarray(0, at);
    case 1:
      copy[at] = dice.below(256);
      return copy;
    case 2:
      copy[at] = (copy[at] ?? 0) ^ (1 << dice.below(8));
      return copy;
    default:
      return Buffer.concat([block.subarray(0, at), Buffer.from([dice.below(256)]), block.subarray(at)]);
  }
}

/** Tries every rule on a connection of its own that `seed` makes. */
export async function compareHpack(seed: number): Promise<HpackDisagreement | undefined> {
  const dice = new Dice(seed);
  return (await decodesTheirs(dice)) ?? (await encodesForThem(dice)) ?? (await agreesOnBroken(dice));
}
