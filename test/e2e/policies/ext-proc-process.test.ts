import assert from "node:assert/strict";
import { test } from "node:test";
import type { Question } from "../../helpers/envoy/ext-proc.ts";
import { startProcessor } from "../../helpers/envoy/processor.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { traceOf } from "../trace/support.ts";

const echo = () => RawUpstream.answering(({ start, body }) => reply(`${start.split(" ")[1]}|${body}`));
const HEADERS = { requestBodyMode: "none", responseBodyMode: "none", responseHeaderMode: "skip" };

/** Routes `/a` and `/b` respond with their name and the request. */
function config(port: number, upstream: number, place: "gateway" | "route", extProc: object): object {
  const policy = { extProc: { host: `127.0.0.1:${port}`, ...extProc } };
  const routes = ["a", "b"].map((name) => ({
    matches: [{ path: { pathPrefix: `/${name}` } }],
    policies: { responseHeaderModifier: { set: { "x-route": name } }, ...(place === "route" && policy) },
    backends: [{ host: `127.0.0.1:${upstream}` }],
  }));
  return { binds: [{ port: 0, listeners: [{ ...(place === "gateway" && { policies: policy }), routes }] }] };
}

test("in the gateway phase the service changes which route matches; later the trace says that the route stays", async () => {
  await using service = await startProcessor(() => [
    {
      request_headers: {
        response: {
          clear_route_cache: true,
          header_mutation: { set_headers: [{ header: { key: ":path", raw_value: Buffer.from("/b/there") } }] },
        },
      },
    },
  ]);
  await using upstream = await echo();
  const options = { processingOptions: HEADERS };
  await using gateway = await TestGateway.start(config(service.port, upstream.port, "gateway", options));
  const ask = async () => {
    const response = await fetch(`http://127.0.0.1:${gateway.port()}/a`);
    return [response.headers.get("x-route"), await response.text()];
  };
  assert.deepEqual(await ask(), ["b", "/b/there|"]);

  await gateway.reconfigure(config(service.port, upstream.port, "route", options));
  let answer: unknown;
  const events = await traceOf(gateway, async () => {
    answer = await ask();
  });
  assert.deepEqual(answer, ["a", "/b/there|"]);
  const told = events.filter(({ message }) => message.type === "policy" && message.kind === "ext_proc");
  assert.match(JSON.stringify(told), /"type":"skip","reason":"the service wants another route \(clear_route_cache\)/);
});

test("the modes that the service sets apply to both sides; streamed is full duplex", async () => {
  const piece = (body: Question["request_body"]) => ({
    response: {
      body_mutation: {
        streamed_response: {
          body: Buffer.from(
            Buffer.from(body?.body ?? [])
              .toString()
              .toUpperCase(),
          ),
          ...(body?.end_of_stream === true && { end_of_stream: true }),
        },
      },
    },
  });
  await using service = await startProcessor(({ request_headers, request_body, response_headers, response_body }) => {
    if (request_headers !== undefined)
      return [{ request_headers: {}, mode_override: { request_body_mode: 1, response_header_mode: 1 } }];
    if (request_body !== undefined) return [{ request_body: piece(request_body) }];
    if (response_headers !== undefined) return [{ response_headers: {}, mode_override: { response_body_mode: 4 } }];
    return response_body === undefined ? [] : [{ response_body: piece(response_body) }];
  });
  await using upstream = await echo();
  const extProc = {
    processingOptions: { ...HEADERS, allowModeOverride: true },
    responseAttributes: { status: "response.code" },
  };
  await using gateway = await LocalGateway.start(config(service.port, upstream.port, "route", extProc));
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/a`, { method: "POST", body: "hello" });
  assert.equal(await response.text(), "/A|HELLO");
  const about = service.questions.find(({ response_headers }) => response_headers !== undefined);
  assert.equal(about?.attributes?.["envoy.filters.http.ext_proc"]?.status, 200);
});

test("a service can extend the timeout", async () => {
  await using service = await startProcessor(() => [{ override_message_timeout: { seconds: 2 } }]);
  await using upstream = await echo();
  const options = { timeout: "1s", processingOptions: HEADERS };
  await using gateway = await TestGateway.start(config(service.port, upstream.port, "route", options));
  let status = 0;
  const events = await traceOf(gateway, async () => {
    status = (await fetch(`http://127.0.0.1:${gateway.port()}/a`)).status;
  });
  assert.equal(status, 500);
  const data = events.flatMap(({ message }) =>
    message.type === "policy" && message.result.type === "apply" ? [message.result.data] : [],
  );
  assert.deepEqual(data[0], { part: "request_headers", timeout: 2000 });
  // It has not responded within that time either.
  assert.match(JSON.stringify(data[1]), /sent nothing about the request in time/);
});

test("the log says that the service denied or failed, where the policy was written, and nothing of other responses", async () => {
  await using service = await startProcessor(({ request_headers, response_headers, request_body }) => {
    if (response_headers !== undefined) return [{ immediate_response: { status: { code: 451 } } }];
    if (request_body !== undefined) return "end";
    const path = request_headers?.headers?.headers?.find(({ key }) => key === ":path");
    const code = Number(
      Buffer.from(path?.raw_value ?? [])
        .toString()
        .slice(3, 6),
    );
    return code === 200 ? [{ request_headers: {} }] : [{ immediate_response: { status: { code } } }];
  });
  await using upstream = await echo();
  const options = { processingOptions: { ...HEADERS, responseHeaderMode: "send", requestBodyMode: "buffered" } };
  await using gateway = await TestGateway.start(config(service.port, upstream.port, "route", options));
  const logged = async (path: string, body?: string): Promise<unknown[]> => {
    const init = body === undefined ? {} : { method: "POST", body };
    await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { ...init, redirect: "manual" });
    await gateway.until(() => gateway.lines.some((line) => line["http.path"] === path), `the line of ${path}`);
    const line = gateway.lines.find((each) => each["http.path"] === path) ?? {};
    return [line["http.status"], line.error, line.reason];
  };
  const origin = "at binds[0].listeners[0].routes[0].policies.extProc";
  const denied = "denied by the processing service: the service denies the";
  assert.deepEqual(await logged("/a/403"), [403, `${denied} request with status 403, ${origin}`, "ExtProc"]);
  assert.deepEqual(await logged("/a/302"), [302, undefined, "ExtProc"]);
  assert.deepEqual(await logged("/a/200"), [451, `${denied} response with status 451, ${origin}`, "ExtProc"]);
  const ended = "ext_proc failed: the service ended the call without a message about the request";
  assert.deepEqual(await logged("/a/200?body", "x"), [500, `${ended}, ${origin}`, "ExtProc"]);

  const streamed = {
    processingOptions: { ...HEADERS, requestHeaderMode: "skip", requestBodyMode: "fullDuplexStreamed" },
  };
  await gateway.reconfigure(config(service.port, upstream.port, "gateway", streamed));
  const place = "at binds[0].listeners[0].policies.extProc";
  assert.deepEqual(await logged("/a/200?stream", "x"), [500, `${ended}, ${place}`, "ExtProc"]);
});

test("an end in the middle of a streamed body is that of the policy with the stream, in either phase and on either side", async () => {
  const denial = [{ immediate_response: { status: { code: 418 } } }];
  await using gatewayService = await startProcessor(({ request_body }) => (request_body === undefined ? [] : denial));
  await using routeService = await startProcessor((question) => {
    if (question.response_body !== undefined) return "end";
    return question.response_headers === undefined ? [] : [{ response_headers: {} }];
  });
  await using upstream = await echo();
  const streamed = (requestBodyMode: string, responseBodyMode: string, responseHeaderMode: string): object => ({
    processingOptions: { requestHeaderMode: "skip", requestBodyMode, responseHeaderMode, responseBodyMode },
  });
  const inRoute = config(routeService.port, upstream.port, "route", streamed("none", "fullDuplexStreamed", "send"));
  const { binds } = inRoute as { binds: { listeners: object[] }[] };
  const extProc = {
    host: `127.0.0.1:${gatewayService.port}`,
    ...streamed("fullDuplexStreamed", "none", "skip"),
  };
  Object.assign(binds[0]?.listeners[0] ?? {}, { policies: { extProc } });
  await using gateway = await TestGateway.start(inRoute);
  const error = async (path: string, init: RequestInit): Promise<unknown> => {
    const response = fetch(`http://127.0.0.1:${gateway.port()}${path}`, init);
    await response.then((answer) => answer.text()).catch(() => "");
    await gateway.until(() => gateway.lines.some((line) => line["http.path"] === path), `the line of ${path}`);
    return gateway.lines.find((line) => line["http.path"] === path)?.error;
  };
  assert.equal(
    await error("/a/request", { method: "POST", body: "hello" }),
    "denied by the processing service: the service denies the request with status 418, at binds[0].listeners[0].policies.extProc",
  );
  assert.equal(
    await error("/b/response", {}),
    "ext_proc failed: the service ended the call without a message about the response, at binds[0].listeners[0].routes[1].policies.extProc",
  );
});
