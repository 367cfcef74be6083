import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, PROCESS, ProcessingRequest, ProcessingResponse } from "../../../test/helpers/envoy/ext-proc.ts";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import type { HeaderList } from "../../http/message/message.ts";
import type { BodySink } from "../contract/types.ts";
import { process } from "../envoy/methods.ts";
import { TestCallouts } from "../testing/callouts.ts";
import { contextOf } from "../testing/context.ts";
import { Session } from "./session.ts";
import { PrefixStage, StreamedBody, TrailerStage } from "./stages.ts";

const SETTINGS = { direction: "request", failOpen: false, context: {} } as const;

const chunk = (text: string, last = false): Answer => ({
  request_body: {
    response: { body_mutation: { streamed_response: { body: Buffer.from(text), end_of_stream: last } } },
  },
});

/** A service that responds to each message with `answers`, and a session with it. */
async function sessionWith(...answers: readonly Answer[]) {
  const calls = new TestCallouts();
  const service = await GrpcServer.start({
    [PROCESS]: {
      stream(call) {
        call.on("data", (message: Buffer) => {
          if (ProcessingRequest.decode(message).request_body?.end_of_stream === true) return;
          for (const answer of answers) call.write(ProcessingResponse.encode(answer));
        });
        call.on("error", () => {});
      },
    },
  });
  const context = contextOf();
  const target = { type: "static", host: "127.0.0.1", port: service.port } as const;
  return {
    session: new Session(calls.callouts(target), process, context, 5000, "route"),
    async [Symbol.asyncDispose]() {
      context.end();
      calls[Symbol.dispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

/** A sink that records what it gets. `onWrite` says whether it accepts more. */
function sinkOf(log: string[], onWrite: () => boolean, done = Promise.withResolvers<void>()) {
  const sink: BodySink = {
    write(bytes) {
      log.push(Buffer.from(bytes).toString());
      return onWrite();
    },
    end(trailers) {
      log.push(["end", ...trailers].join(" "));
      done.resolve();
    },
    resume: () => log.push("resume"),
    breakOff: done.reject,
  };
  return { sink, ended: done.promise };
}

test("a service that sends faster than the sink takes has to wait for each chunk", async () => {
  await using service = await sessionWith(chunk("a"), chunk("b"), chunk("c", true));
  const log: string[] = [];
  const { sink, ended } = sinkOf(log, () => {
    setImmediate(() => {
      log.push("drain");
      stage.onDrain();
    });
    return false;
  });
  const stage = new StreamedBody(service.session, sink, SETTINGS, false);
  stage.write(Buffer.from("x"));
  await ended;
  // The last chunk comes with the end of the body.
  assert.deepEqual(
    log.filter((entry) => entry !== "resume"),
    ["a", "drain", "b", "drain", "c", "end"],
  );
});

test("a slow sink does not delay responses about other parts", async () => {
  await using service = await sessionWith(chunk("a"), { response_headers: {} });
  const log: string[] = [];
  const { sink } = sinkOf(log, () => false);
  const stage = new StreamedBody(service.session, sink, SETTINGS, false);
  const heard = Promise.withResolvers<void>();
  const listener = { onFailure: heard.reject, onSendDrain() {}, congested: false };
  service.session.listen("responseHeaders", { ...listener, onResponse: () => heard.resolve() });
  stage.write(Buffer.from("x"));
  await heard.promise;
  assert.deepEqual(
    log.filter((entry) => entry !== "resume"),
    ["a"],
  );
});

test("a slow sink stops the source of stages that pass bytes on, and lets it resume", async () => {
  await using service = await sessionWith();
  const log: string[] = [];
  const { sink } = sinkOf(log, () => false);
  const trailers = new TrailerStage(service.session, sink, SETTINGS);
  const prefix = new PrefixStage(sink, 2, Buffer.from("new"));
  assert.deepEqual([trailers.write(Buffer.from("1")), prefix.write(Buffer.from("old"))], [false, false]);
  trailers.onDrain();
  prefix.onDrain();
  assert.deepEqual(log, ["new", "1", "d", "resume", "resume"]);
});

test("a body without trailers does not cost the service a message", async () => {
  await using service = await sessionWith();
  const log: string[] = [];
  const { sink } = sinkOf(log, () => true);
  const none: HeaderList = [];
  new TrailerStage(service.session, sink, SETTINGS).end(none);
  assert.deepEqual(log, ["end"]);
});
