import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

/** A token endpoint that issues tokens for the requested audience, valid for `seconds`. */
async function tokenEndpoint(seconds: number) {
  const forms: URLSearchParams[] = [];
  const server = await RawUpstream.answering((request) => {
    const [basic = ""] = valuesOf(request, "authorization");
    const client = atob(basic.replace(/^Basic /, ""));
    const form = new URLSearchParams(request.body);
    forms.push(form);
    const ok = request.start === "POST /realms/shop/protocol/openid-connect/token HTTP/1.1";
    if (!ok || client !== "gateway:gateway-secret") return reply('{"error":"invalid_client"}', [], "401 Unauthorized");
    const claims = {
      sub: `exchanged ${form.get("subject_token")}`,
      aud: form.get("audience"),
      exp: Math.floor(Date.now() / 1000) + seconds,
    };
    const token = [{ alg: "none" }, claims, {}].map((part) => btoa(JSON.stringify(part))).join(".");
    return reply(JSON.stringify({ access_token: token, token_type: "Bearer", expires_in: seconds }), [
      "content-type: application/json",
    ]);
  });
  return Object.assign(server, { forms });
}

for (const name of ["config.yaml", "backend-auth.yaml"])
  test(`${name}: the backend gets an exchanged token, requested once for each token of the client`, async () => {
    await using endpoint = await tokenEndpoint(600);
    await using backend = await RawUpstream.answering((request) => reply(valuesOf(request, "authorization").join()));
    const text = await readFile(new URL(`../../../examples/token-exchange/${name}`, import.meta.url), "utf8");
    const config = { config: { adminAddr: "127.0.0.1:0", statsAddr: "127.0.0.1:0", readinessAddr: "127.0.0.1:0" } };
    await using gateway = await TestGateway.start(
      `${text.replace("port: 3000", "port: 0")}\nconfig: ${JSON.stringify({ ...config.config, workerThreads: 1 })}\n`,
      { env: { TOKEN_HOST: `127.0.0.1:${endpoint.port}`, BACKEND_HOST: `127.0.0.1:${backend.port}` } },
    );
    const ask = async (token: string): Promise<Record<string, unknown>> => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers });
      const got = await response.text();
      assert.equal(response.status, 200, got);
      assert.match(got, /^Bearer [^.]+\.[^.]+\.[^.]+$/);
      return JSON.parse(Buffer.from(got.split(".")[1] ?? "", "base64url").toString());
    };
    for (const token of ["one", "one", "two"]) {
      const { sub, aud } = await ask(token);
      assert.deepEqual([sub, aud], [`exchanged ${token}`, "orders"]);
    }
    const [form] = endpoint.forms;
    assert.equal(form?.get("grant_type"), "urn:ietf:params:oauth:grant-type:token-exchange");
    assert.equal(form?.get("subject_token_type"), "urn:ietf:params:oauth:token-type:access_token");
    assert.deepEqual(
      endpoint.forms.map((each) => each.get("subject_token")),
      ["one", "two"],
    );
    if (name === "config.yaml")
      await gateway.until(
        () => gateway.lines.some((line) => line["exchanged.subject"] === "exchanged one"),
        "the line of the log",
      );
  });
