/**
 * Time to decode and to encode header blocks of typical messages, one after the other on one connection. Blocks to decode are
 * those of nghttp2, with Huffman codes, as browsers and gRPC clients send them.
 * Run: node bench/micro/hpack.ts
 */
import { FieldSection, HpackDecoder } from "../../src/http/h2/hpack/decoder.ts";
import { HpackEncoder } from "../../src/http/h2/hpack/encoder.ts";
import { Nghttp2Encoder } from "../../test/fuzz/http2/nghttp2.ts";

const LIMITS = { tableSize: 4096, maxListSize: 65_536, maxFields: 100 };
const ITERATIONS = 100_000;
const ROUNDS = 7;
/** Messages that are made before measuring; those that change are as many different ones. */
const VARIANTS = 64;

/** Message number i: pseudo-fields first. */
type Message = (i: number) => Record<string, string>;

const id = (i: number) => `${(i * 2_654_435_761) % 2 ** 32}-9f3b-4c1d-8e7a-${String(i).padStart(12, "0")}`;
const browser = (path: string) => ({
  ":method": "GET",
  ":authority": "www.example.com",
  ":scheme": "https",
  ":path": path,
  "sec-ch-ua": '"Chromium";v="126", "Google Chrome";v="126", "Not-A.Brand";v="99"',
  "sec-ch-ua-mobile": "?0",
  "sec-ch-ua-platform": '"Linux"',
  "user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "sec-fetch-site": "same-origin",
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
  "accept-encoding": "gzip, deflate, br, zstd",
  "accept-language": "en-US,en;q=0.5",
  cookie: "session=3f0c2b6e8d8a4f5c; theme=dark",
});
const REQUESTS: Readonly<Record<string, Message>> = {
  "browser, one path": () => browser("/assets/app.js?v=20240611"),
  "browser, new paths": (i) => browser(`/assets/${id(i)}/app.js?v=${i}`),
  gRPC: (i) => ({
    ":method": "POST",
    ":scheme": "http",
    ":path": "/helloworld.Greeter/SayHello",
    ":authority": "greeter.default.svc.cluster.local:50051",
    "content-type": "application/grpc",
    "user-agent": "grpc-go/1.62.0",
    te: "trailers",
    "grpc-timeout": `${999_000 + i}u`,
  }),
};
const RESPONSES: Readonly<Record<string, Message>> = {
  "response, always the same": () => ({
    ":status": "200",
    "content-type": "text/html; charset=utf-8",
    "content-length": "102",
    "cache-control": "max-age=3600",
    date: "Tue, 11 Jun 2024 10:00:00 GMT",
    server: "nginx/1.22.1",
  }),
  "response, new values": (i) => ({
    ":status": "200",
    "content-type": "application/json",
    "content-length": String(1000 + i),
    etag: `"${id(i)}"`,
    date: "Tue, 11 Jun 2024 10:00:00 GMT",
    "x-request-id": id(i),
  }),
  "gRPC trailers": () => ({ "grpc-status": "0", "grpc-message": "" }),
};

const section = new FieldSection();

function decodeAll(decoder: HpackDecoder, block: Buffer): number {
  const error = decoder.decode(block, 0, block.length, section);
  if (error !== undefined || section.malformed !== "" || section.tooLarge) throw new Error(`${error}`);
  return section.fields.length;
}

/** Decodes the blocks of VARIANTS messages again and again, after those of the first round have filled the table. */
async function decoding(message: Message): Promise<() => number> {
  using encoder = new Nghttp2Encoder();
  const decoder = new HpackDecoder(LIMITS);
  const blocks: Buffer[] = [];
  for (let i = 0; i < VARIANTS; i++) decodeAll(decoder, await encoder.encode(message(i)));
  // Literals that enter the table would move it on from round to round; what is left out of it comes again as it is.
  for (let i = 0; i < VARIANTS; i++) {
    const block = await encoder.encode(message(i));
    decodeAll(decoder, block);
    blocks.push(block);
  }
  let next = 0;
  return () => decodeAll(decoder, blocks[next++ % VARIANTS] as Buffer);
}

async function decodingFirst(message: Message): Promise<() => number> {
  using encoder = new Nghttp2Encoder();
  const block = await encoder.encode(message(0));
  return () => decodeAll(new HpackDecoder(LIMITS), block);
}

function encoding(message: Message): () => number {
  const encoder = new HpackEncoder();
  const out = Buffer.alloc(16_384);
  const messages = Array.from({ length: VARIANTS }, (_, i) => {
    const texts = Object.entries(message(i));
    const pseudo = texts.filter(([name]) => name.startsWith(":")).flat();
    return { pseudo, fields: texts.filter(([name]) => !name.startsWith(":")).flat() };
  });
  let next = 0;
  return () => {
    const { pseudo, fields } = messages[next++ % VARIANTS] as (typeof messages)[number];
    if (encoder.bound(pseudo, fields) > out.length) throw new Error("no room");
    return encoder.encode(pseudo, fields, out, 0);
  };
}

function microseconds(run: () => number): number {
  let sum = 0;
  const start = process.hrtime.bigint();
  for (let i = 0; i < ITERATIONS; i++) sum += run();
  if (sum === 0) throw new Error("nothing was done");
  return Number(process.hrtime.bigint() - start) / ITERATIONS / 1000;
}

const runs = new Map<string, () => number>();
for (const [name, message] of Object.entries(REQUESTS)) {
  runs.set(`decode ${name}`, await decoding(message));
  runs.set(`decode ${name}: the first of a connection`, await decodingFirst(message));
}
for (const [name, message] of Object.entries({ ...REQUESTS, ...RESPONSES }))
  runs.set(`encode ${name}`, encoding(message));

const best = new Map<string, number>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, run] of runs) {
    best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, microseconds(run)));
  }
}
for (const [name, time] of best) console.log(`${time.toFixed(2)} µs  ${name}`);
