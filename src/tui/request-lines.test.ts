import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf } from "../report/text.ts";
import { eventsOf } from "./fixtures/follow.ts";
import { requestColumns, requestHeader, requestLine } from "./request-lines.ts";

const request = (path: string, pod = "", took = 2000) => {
  return { number: 1, pod, events: eventsOf(1, { path, status: 503, took }), lengths: [], length: 0, omitted: 0 };
};
const drawn = (width: number, ...requests: ReturnType<typeof request>[]) => {
  const columns = requestColumns(width, requests);
  return [requestHeader(columns), ...requests.map((each, index) => requestLine(each, columns, index === 0))];
};

test("a wide pane has everything, a narrow one cuts paths and leaves out the reason", () => {
  assert.deepEqual(drawn(100, request("/api/cart"), request("/x", "", 1_250_000)), [
    " Time          Request        Status     Took  Why",
    "›04:05:01.678  GET /api/cart  503        2 ms  route api",
    " 04:05:01.678  GET /x         503      1.25 s  route api",
  ]);
  assert.deepEqual(drawn(46, request("/api/cart/with/a/long/path")), [
    " Time      Request             Status     Took",
    "›04:05:01  GET /api/cart/wit…  503        2 ms",
  ]);
});

test("of a long name of a pod the end is shown, which tells pods apart", () => {
  const [header = "", line = ""] = drawn(80, request("/x", "web-deployment-7d4b9c5f6-x2x5k"));
  assert.match(header, /^ Time {6}Pod {15}Request/);
  assert.match(line, /^›04:05:01 {2}…7d4b9c5f6-x2x5k {2}GET \/x/);
  assert.match(drawn(50, request("/x", "web-deployment-7d4b9c5f6-x2x5k"))[1] ?? "", /^›04:05:01 {2}…x2x5k {2}GET \/x/);
});

test("durations have three digits, and no line is wider than the pane up to the reason", () => {
  const took = (microseconds: number) =>
    drawn(60, request("/", "", microseconds))[1]
      ?.slice(-26)
      .trim();
  assert.match(took(289) ?? "", /289 µs/);
  assert.match(took(11_362) ?? "", /11\.4 ms/);
  assert.match(took(999_600) ?? "", /\b1 s/);
  assert.match(took(3_600_000_000) ?? "", /3600 s/);
  for (const width of [30, 46, 60, 76, 120]) {
    const columns = requestColumns(width, [request("/漢字/漢字/漢字/漢字/漢字/漢字/漢字/漢字", "web-1")]);
    const line = requestLine(request("/漢字/漢字/漢字/漢字/漢字/漢字/漢字/漢字", "web-1"), columns, true);
    assert.ok(
      columnsOf(line) - (columns.why === 0 ? 0 : columnsOf("route api")) <= Math.max(width, 38),
      `${width}: ${line}`,
    );
  }
});
