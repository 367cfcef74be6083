import assert from "node:assert/strict";
import { test } from "node:test";
import { FLOW_CONTROL_ERROR, PROTOCOL_ERROR } from "./frames.ts";
import { PeerSettings } from "./peer-settings.ts";

/** Reads settings, ids and values alternately; returns the code of the error, if any. */
function read(settings: PeerSettings, list: readonly number[], mayPush = true): number | undefined {
  const payload = Buffer.alloc(list.length * 3);
  for (let i = 0; i < list.length; i += 2) {
    payload.writeUInt16BE(list[i] ?? 0, i * 3);
    payload.writeUInt32BE(list[i + 1] ?? 0, i * 3 + 2);
  }
  return settings.read(payload, 0, payload.length, mayPush)?.code;
}

test("all settings are adopted, the last one of each counts, and unknown ones are left out", () => {
  const settings = new PeerSettings();
  assert.equal(settings.settled, false);
  assert.equal(
    read(settings, [1, 0, 3, 0, 4, 0, 4, 2 ** 31 - 1, 6, 2 ** 32 - 1, 8, 1, 0xffff, 2 ** 32 - 1]),
    undefined,
  );
  const { headerTableSize, maxStreams, initialWindow, maxHeaderListSize, connectProtocol, settled } = settings;
  assert.deepEqual(
    [headerTableSize, maxStreams, initialWindow, maxHeaderListSize, connectProtocol, settled],
    [0, 0, 2 ** 31 - 1, 2 ** 32 - 1, true, true],
  );
  // A later frame changes what it names.
  assert.equal(read(settings, [3, 7]), undefined);
  assert.deepEqual([settings.maxStreams, settings.initialWindow], [7, 2 ** 31 - 1]);
});

test("values beyond the limits of RFC 9113 6.5.2 are errors, those at the limits are not", () => {
  for (const [list, mayPush, code] of [
    [[2, 0], false, undefined],
    [[2, 1], true, undefined],
    [[2, 1], false, PROTOCOL_ERROR],
    [[2, 2], true, PROTOCOL_ERROR],
    [[4, 2 ** 31], true, FLOW_CONTROL_ERROR],
    [[5, 2 ** 14], true, undefined],
    [[5, 2 ** 24 - 1], true, undefined],
    [[5, 2 ** 14 - 1], true, PROTOCOL_ERROR],
    [[5, 2 ** 24], true, PROTOCOL_ERROR],
    [[8, 2], true, PROTOCOL_ERROR],
    [[9, 1], true, undefined],
    [[9, 2], true, PROTOCOL_ERROR],
  ] as const)
    assert.equal(read(new PeerSettings(), list, mayPush), code, list.join(" = "));
});

test("a field section counts by its names, its values and 32 bytes for each field", () => {
  const settings = new PeerSettings();
  const [pseudo, fields] = [
    [":method", "GET"],
    ["a", "x".repeat(100)],
  ];
  assert.equal(settings.takes(pseudo, fields), true);
  read(settings, [6, 32 + 10 + 32 + 101]);
  assert.equal(settings.takes(pseudo, fields), true);
  read(settings, [6, 32 + 10 + 32 + 100]);
  assert.equal(settings.takes(pseudo, fields), false);
});
