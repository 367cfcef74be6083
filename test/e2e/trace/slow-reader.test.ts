import assert from "node:assert/strict";
import { buffer, text as readText } from "node:stream/consumers";
import { test } from "node:test";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { SEQUENCE_GET } from "./expected.ts";
import { call, rawClient, sequence, Upstream } from "./support.ts";

/** The reasons of this many routes, and both bodies, are more than the sockets between gateway and reader buffer. */
const ROUTES = 8000;
const BODY = Buffer.alloc(2 * 1024 * 1024, "x");

test("the stream of a reader that does not read counts the dropped events, and ends", async () => {
  const upstream = await Upstream.start();
  // A backend that responds after the whole request: the sequence is that of the interface.
  upstream.on("/echo", async (request, response) => response.end(await buffer(request)));
  const name = "r".repeat(60);
  const routes = Array.from({ length: ROUTES }, (_, index) => ({
    name: `${name}${index}`,
    matches: [{ path: { exact: `/${name}/${index}` } }],
  }));
  const echo = { name: "echo", backends: [{ host: upstream.address }] };
  await using gateway = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [...routes, echo] }] }],
  });
  const reader = await rawClient(
    Number(new URL(gateway.url("admin")).port),
    "POST /debug/trace HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
  );
  await new Promise((resolve) => reader.once("readable", resolve));
  assert.match(String(reader.read()), /^HTTP\/1\.1 200 .*: ready/s);

  await call(gateway.port(), { method: "POST", path: "/echo", body: BODY });
  await gateway.until(() => gateway.lines.some((line) => line["http.path"] === "/echo"), "the end of the request");

  const text = await readText(reader);
  const events = text
    .split("\n")
    .map((line) => line.trimEnd())
    .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as TraceEvent] : []));
  await upstream.close();
  const missed = events.flatMap(({ message }) => (message.type === "dropped" ? [message.count] : []));
  assert.ok(missed.length > 0, sequence(events).join(", "));
  // The body of the request is one more event than in the sequence of a GET.
  const expected = SEQUENCE_GET.toSpliced(
    SEQUENCE_GET.indexOf("backendCallStart") + 1,
    0,
    "bodySnapshot final request",
  );
  const arrived = events.length - missed.length;
  const counted = arrived + missed.reduce((sum, count) => sum + count, 0);
  // On a slow machine, events about the progress come on top.
  assert.ok(counted >= expected.length, `${counted} events`);
  let last = 0;
  for (const { eventEnd, severity, message } of events) {
    assert.ok(eventEnd >= last);
    last = eventEnd;
    if (message.type === "dropped") assert.equal(severity, "warn");
  }
  // The received events are in order, with gaps where events were dropped.
  let at = 0;
  let gap = false;
  for (const step of sequence(events)) {
    if (step === "dropped") gap = true;
    else {
      const found = expected.indexOf(step, at);
      assert.ok(gap ? found >= at : found === at, `${step} after ${expected[at - 1]}`);
      at = found + 1;
      gap = false;
    }
  }
});
