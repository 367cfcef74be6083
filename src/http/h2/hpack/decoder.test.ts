import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FieldSection, HpackDecoder, type HpackLimits } from "./decoder.ts";

const LIMITS: HpackLimits = { tableSize: 4096, maxListSize: 16_384, maxFields: 100 };

/** Decodes blocks of one connection, given in hex. */
function reader(limits: Partial<HpackLimits> = {}): (hex: string) => FieldSection {
  const decoder = new HpackDecoder({ ...LIMITS, ...limits });
  return (hex) => {
    const section = new FieldSection();
    const block = Buffer.from(hex.replaceAll(" ", ""), "hex");
    // Somewhere within a larger buffer, whose other bytes must not matter.
    const buffer = Buffer.concat([Buffer.from([0x82]), block, Buffer.from([0x82, 0x82])]);
    const error = decoder.decode(buffer, 1, 1 + block.length, section);
    if (error !== undefined) throw new Error(error);
    return section;
  };
}

const hex = (text: string) => Buffer.from(text, "latin1").toString("hex");
/** A string literal without Huffman, below 127 octets. */
const raw = (text: string) => text.length.toString(16).padStart(2, "0") + hex(text);
const times = (count: number, part: string) => part.repeat(count);

describe("the examples of RFC 7541 appendix C", () => {
  test("C.2: one representation each", () => {
    assert.deepEqual(reader()("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572").fields, [
      "custom-key",
      "custom-header",
    ]);
    assert.deepEqual(reader()("040c 2f73 616d 706c 652f 7061 7468").fields, [":path", "/sample/path"]);
    const { fields } = reader()("1008 7061 7373 776f 7264 0673 6563 7265 74");
    assert.deepEqual([[...fields], fields.neverIndexed], [["password", "secret"], new Set(["password"])]);
    assert.deepEqual(reader()("82").fields, [":method", "GET"]);
  });

  const requests = [
    [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "www.example.com"],
    [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "www.example.com", "cache-control", "no-cache"],
    [
      ...[":method", "GET", ":scheme", "https", ":path", "/index.html", ":authority", "www.example.com"],
      ...["custom-key", "custom-value"],
    ],
  ];

  test("C.3: requests without Huffman", () => {
    const read = reader();
    assert.deepEqual(read("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d").fields, requests[0]);
    assert.deepEqual(read("8286 84be 5808 6e6f 2d63 6163 6865").fields, requests[1]);
    assert.deepEqual(
      read("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65").fields,
      requests[2],
    );
  });

  test("C.4: requests with Huffman", () => {
    const read = reader();
    assert.deepEqual(read("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff").fields, requests[0]);
    assert.deepEqual(read("8286 84be 5886 a8eb 1064 9cbf").fields, requests[1]);
    assert.deepEqual(read("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf").fields, requests[2]);
  });

  const location = ["location", "https://www.example.com"];
  const date = ["date", "Mon, 21 Oct 2013 20:13:21 GMT"];
  const responses = [
    [":status", "302", "cache-control", "private", ...date, ...location],
    [":status", "307", "cache-control", "private", ...date, ...location],
    [
      ...[":status", "200", "cache-control", "private", "date", "Mon, 21 Oct 2013 20:13:22 GMT", ...location],
      ...["content-encoding", "gzip", "set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
    ],
  ];

  test("C.5: responses without Huffman, and a table of 256 bytes that evicts", () => {
    const read = reader({ tableSize: 256 });
    assert.deepEqual(
      read(
        `3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133
        3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`.replaceAll(/\s/g, ""),
      ).fields,
      responses[0],
    );
    assert.deepEqual(read("4803 3330 37c1 c0bf").fields, responses[1]);
    assert.deepEqual(
      read(
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f
        6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630
        303b 2076 6572 7369 6f6e 3d31`.replaceAll(/\s/g, ""),
      ).fields,
      responses[2],
    );
  });

  test("C.6: responses with Huffman, and a table of 256 bytes that evicts", () => {
    const read = reader({ tableSize: 256 });
    assert.deepEqual(
      read(
        `3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
        63c7 8f0b 97c8 e9ae 82ae 43d3`.replaceAll(/\s/g, ""),
      ).fields,
      responses[0],
    );
    assert.deepEqual(read("4883 640e ffc1 c0bf").fields, responses[1]);
    assert.deepEqual(
      read(
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335
        dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`.replaceAll(/\s/g, ""),
      ).fields,
      responses[2],
    );
  });
});

test("errors of compression end the connection", () => {
  const cases: readonly (readonly [block: string, error: RegExp, why: string])[] = [
    ["80", /table entry that does not exist/, "index 0"],
    ["be", /table entry that does not exist/, "the dynamic table is empty"],
    ["ffffffff7f", /table entry that does not exist/, "an index far beyond the tables"],
    ["7e00", /table entry that does not exist/, "a name of an empty table"],
    ["0f2f00", /table entry that does not exist/, "as above, without indexing"],
    [`40${raw("a")}${raw("b")}bf`, /table entry that does not exist/, "one after the last entry"],
    ["ff8080808001", /too large/, "an index of more than 28 bits"],
    ["ff808080808000", /too large/, "zeros without end"],
    ["ff", /ends within/, "an index without its end"],
    ["ff80", /ends within/, "as above, after a byte"],
    ["40", /ends within/, "no name"],
    ["4001", /ends within/, "a name without its octets"],
    [`40${raw("a")}`, /ends within/, "no value"],
    [`40${raw("a")}027a`, /ends within/, "a value without its last octet"],
    ["007fffffff7f", /ends within/, "a name of 256 MiB"],
    ["008106", /Huffman/, "padding with a zero"],
    [`00${raw("a")}84ffffffff`, /Huffman/, "EOS"],
    ["3fe21f", /above the limit/, "a table of 4097 bytes"],
    ["3fffffff7f", /above the limit/, "a huge table"],
    ["8220", /after a field/, "a table size in the middle"],
    [`00${raw("a")}${raw("b")}3e`, /after a field/, "a table size at the end"],
  ];
  for (const [block, error, why] of cases) assert.throws(() => reader()(block), error, why);
});

test("integers of several bytes are read, also with useless zeros", () => {
  const long = "x".repeat(300);
  assert.deepEqual(reader()(`00 7f8100 ${hex("a".repeat(128))} 7fad01 ${hex(long)}`).fields, ["a".repeat(128), long]);
  assert.deepEqual(reader()(`0f 80808000 ${raw("v")}`).fields, ["accept-charset", "v"]);
});

test("a long string of short codes is decoded whole", () => {
  // 100,000 zeros are 20,000 times the character 0.
  assert.deepEqual(reader({ maxListSize: 65_536 })(`00 ${raw("a")} ffd560 ${"00".repeat(12_500)}`).fields, [
    ...["a", "0".repeat(20_000)],
  ]);
});

test("a table size may come twice, and again in the next block; size 0 empties the table", () => {
  const read = reader();
  assert.deepEqual(read(`40${raw("a")}${raw("1")}`).fields, ["a", "1"]);
  assert.deepEqual(read("3fe11f be").fields, ["a", "1"], "4096 changes nothing");
  assert.throws(() => read("20 3fe11f be"), /table entry that does not exist/);
  assert.deepEqual(
    read(`20 40${raw("b")}${raw("2")}`).fields,
    ["b", "2"],
    "an entry that does not fit is not an error",
  );
  assert.throws(() => read("be"), /table entry that does not exist/);
  assert.deepEqual(read(`3fe11f 40${raw("c")}${raw("3")} be`).fields, ["c", "3", "c", "3"]);
});

test("the oldest entries make room, and an entry above the table size empties it", () => {
  const read = reader();
  // 34 bytes each; three fit in 110 bytes.
  const entry = (name: string) => `40${raw(name)}${raw("v")}`;
  assert.deepEqual(read(`3f4f ${entry("a")} ${entry("b")} ${entry("c")} c0`).fields.at(-2), "a");
  assert.deepEqual(read(`${entry("d")} c0`).fields.at(-2), "b", "a has left");
  assert.throws(() => read("c1"), /table entry that does not exist/);
  // The name of the entry that is evicted for it: index 64 is b.
  assert.deepEqual(read(`7f01 ${raw("new")} be c0`).fields, ["b", "new", "b", "new", "c", "v"]);
  assert.deepEqual(read(`40${raw("e")}${raw("x".repeat(78))}`).fields[0], "e", "111 bytes");
  assert.throws(() => read("be"), /table entry that does not exist/);
});

test("a table of many small entries keeps all of them", () => {
  const read = reader({ maxFields: 1000 });
  // 4096 / 33 = 124 entries with a name of one octet and no value.
  const names = Array.from({ length: 300 }, (_, i) => String.fromCharCode(97 + (i % 26)));
  read(names.map((name) => `40${raw(name)}00`).join(""));
  const oldest = names.length - 124;
  // Index 61 + 124 = 185 = 127 + 58.
  assert.deepEqual(read("ff3a").fields, [names[oldest], ""]);
  assert.throws(() => read("ff3b"), /table entry that does not exist/);
});

test("names and values that no message may have", () => {
  const literal = (name: string, value: string) => `00${raw(name)}${raw(value)}`;
  for (const [block, malformed] of [
    [literal("a", "b"), ""],
    [literal(":protocol", "websocket"), ""],
    [literal("x_y.z!#$%&'*+-^`|~09", "\xe4 \t\x80\xff"), ""],
    [literal("a", ""), ""],
    [literal("A", "b"), "name"],
    [literal("content-Length", "1"), "name"],
    [literal("", "b"), "name"],
    [literal(":", "b"), "name"],
    [literal("::a", "b"), "name"],
    [literal("a:b", "b"), "name"],
    [literal("a b", "b"), "name"],
    [literal("a\0", "b"), "name"],
    [literal("\xe4", "b"), "name"],
    [literal("a", "\r"), "value"],
    [literal("a", "b\nc: d"), "value"],
    [literal("a", "b\0"), "value"],
    [literal("a", "b\x1fc"), "value"],
    [literal("a", "b\x7fc"), "value"],
    [literal("a", " b"), "value"],
    [literal("a", "b\t"), "value"],
    [literal("a", " "), "value"],
    [`${literal("a", "b")}${literal("a", "b\n")}${literal("A", "b")}82`, "value"],
  ] as const) {
    const section = reader()(block);
    if (malformed === "") assert.equal(section.malformed, "", block);
    else assert.match(section.malformed, malformed === "name" ? /field name/ : /field value/, block);
  }
});

test("what is malformed stays so in the table", () => {
  const read = reader();
  assert.match(read(`40${raw("a")}${raw("b\n")}`).malformed, /field value/);
  assert.match(read("82be").malformed, /field value/);
  assert.equal(read("82").malformed, "");
  assert.equal(read(`7e${raw("fine")}`).malformed, "", "the name is a good one");
  assert.match(read(`40${raw("A")}${raw("b")}`).malformed, /field name/);
  assert.match(read(`0f2f${raw("fine")}`).malformed, /field name/);
  assert.match(read(`7e${raw("fine")}`).malformed, /field name/);
  assert.match(read("be").malformed, /field name/);
  read("20");
  assert.equal(read(`3fe11f 40${raw("a")}${raw("b")} be`).malformed, "", "the numbers of entries that have left");
});

test("known names are the same string each time, and unknown ones the same text", () => {
  const read = reader();
  assert.deepEqual(read(`00${raw("grpc-status")}${raw("0")}00${raw("x-mine")}${raw("0")}`).fields, [
    ...["grpc-status", "0", "x-mine", "0"],
  ]);
});

test("a section that is too large is cut, and the table is right nevertheless", () => {
  const entry = (name: string, value: string) => `40${raw(name)}${raw(value)}`;
  const read = reader({ maxListSize: 100, maxFields: 3 });
  const cut = read(`82 ${entry("a", "x".repeat(60))} ${entry("b", "1")} 00${raw("c")}${raw("\n")} 83`);
  assert.deepEqual(cut, Object.assign(new FieldSection(), { fields: [":method", "GET"], tooLarge: true }));
  assert.deepEqual(read("be").fields, ["b", "1"]);
  assert.deepEqual(read("bf").fields, ["a", "x".repeat(60)], "93 bytes fit");

  assert.equal(read("828282").tooLarge, true, "126 bytes");
  const many = reader({ maxFields: 3 });
  assert.equal(many("828282").tooLarge, false);
  const { fields, tooLarge } = many("82828284");
  assert.deepEqual([fields.length, tooLarge], [6, true]);
});

test("references to a large entry cannot fill the memory", () => {
  const read = reader();
  // An entry of 4064 bytes, then 10,000 references to it: 40 MB of fields.
  const { fields, tooLarge } = read(`40 01 61 7fe01e ${hex("x".repeat(3999 + 32))} ${times(10_000, "be")}`);
  assert.equal(tooLarge, true);
  assert.ok(fields.join("").length <= LIMITS.maxListSize);
});
