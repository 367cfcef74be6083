import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { call, messageOf, stateAt, traceOf, Upstream } from "./support.ts";

const SECRETS = {
  "x-amz-security-token": "amz-secret-value",
  "x-token": "token-secret-value",
  "x-goog-iap-jwt-assertion": "iap-secret-value",
  "x-vendor-signature": "signature-secret-value",
  "mcp-session-id": "session-secret-value",
  "ocp-apim-subscription-key": "subscription-secret-value",
  "x-amzn-oidc-data": "oidc-secret-value",
  dpop: "dpop-secret-value",
  authorization: "Bearer key-secret-value",
};

suite("redaction in traces", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/in", (_request, response) => {
      const location = "https://b.test/cb?code=location-secret&page=4#access_token=fragment-secret";
      response.writeHead(200, { location, "x-session-id": "answer-secret" }).end();
    });
    const backends = [{ host: upstream.address }];
    gateway = await TestGateway.start({
      ...proxyTo(upstream.address),
      binds: [
        {
          port: 0,
          listeners: [
            {
              routes: [
                {
                  name: "in",
                  matches: [{ path: { exact: "/in" } }],
                  policies: {
                    apiKey: {
                      keys: [{ key: "key-secret-value", metadata: { name: "alice", accessToken: "stored" } }],
                      mode: "strict",
                    },
                    transformations: {
                      request: { metadata: { plan: "'gold'", copied: "'was ' + request.headers['x-token']" } },
                    },
                  },
                  backends,
                },
                {
                  name: "moved",
                  matches: [
                    { path: { exact: "/moved" }, query: [{ name: "token", value: { exact: "query-secret" } }] },
                  ],
                  policies: { requestRedirect: { path: { full: "/to" } } },
                },
              ],
            },
          ],
        },
      ],
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const path = "/in?X-Amz-Signature=query-secret&page=3&access%5Ftoken=encoded-secret&code=code-secret";
  const headers = {
    ...SECRETS,
    "x-original-url": "/x?token=original-secret",
    referer: "https://me:password-secret@a.test/x?page=2&token=referer-secret,more",
  };

  test("values with names that suggest a secret are redacted in headers, URLs and claims, and wherever they reappear", async () => {
    const events = await traceOf(gateway, () => call(gateway.port(), { path, headers }));
    assert.doesNotMatch(JSON.stringify(events), /secret(?!_)/);
    const { request, apiKey, metadata, destination } = stateAt(events, "final request");
    assert.equal(request?.headers["x-token"], "<redacted>");
    assert.equal(request?.headers.referer, "https://<redacted>@a.test/x?page=2&token=<redacted>");
    assert.match(request?.uri ?? "", /page=3/);
    assert.deepEqual(apiKey, { name: "alice", accessToken: "<redacted>", key: "<redacted>" });
    assert.deepEqual(metadata, { plan: "gold", copied: "was <redacted>" });
    assert.deepEqual(destination, { address: "127.0.0.1", port: gateway.port() });
    const answer = stateAt(events, "final response").response?.headers;
    assert.equal(answer?.location, "https://b.test/cb?code=<redacted>&page=4#access_token=<redacted>");
  });

  test("redirects and the reasons of candidates show no secret parameters", async () => {
    const found = await traceOf(gateway, () => call(gateway.port(), { path: "/moved?token=query-secret&page=5" }));
    assert.doesNotMatch(JSON.stringify(found), /secret/);
    assert.match(JSON.stringify(found), /page=5/);
    const missed = await traceOf(gateway, () => call(gateway.port(), { path: "/moved?token=other-secret" }));
    assert.doesNotMatch(JSON.stringify(missed), /secret/);
    const { candidates } = messageOf(missed, "routeSelection");
    assert.match(candidates[0]?.reason ?? "", /query token: <redacted> does not match/);
  });

  test("reveal shows the secrets of request and response", async () => {
    const events = await traceOf(gateway, () => call(gateway.port(), { path, headers }), { reveal: true });
    const { request, metadata } = stateAt(events, "initial request");
    assert.equal(request?.headers["x-token"], SECRETS["x-token"]);
    assert.equal(request?.headers.referer, headers.referer);
    assert.match(request?.uri ?? "", /X-Amz-Signature=query-secret/);
    assert.equal(metadata, undefined, "no policy has run");
  });

  test("ordinary fields and parameters stay readable", async () => {
    const plain = {
      "x-max-tokens": "100",
      "access-control-request-headers": "authorization",
      "x-author": "me",
      "idempotency-key": "k-1",
    };
    const events = await traceOf(gateway, () =>
      call(gateway.port(), { path: "/in?monkey=1&keyword=x&state=open", headers: plain }),
    );
    const { request } = stateAt(events, "initial request");
    for (const [name, value] of Object.entries(plain)) assert.equal(request?.headers[name], value);
    assert.equal(request?.pathAndQuery, "/in?monkey=1&keyword=x&state=open");
  });
});
