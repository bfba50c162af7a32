// The parts of the client that the shared cases leave out, against a real daemon.
import assert from "node:assert/strict";
import { mkdtempSync, openAsBlob, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Conflict, Ebbtide, NotFound, Precondition } from "ebbtide-client";

const memory = new Ebbtide({ baseUrl: process.env["EBBTIDE_TEST_URL"]! });

test("a recall as text, and an attachment", async () => {
  const bytes = new Uint8Array([137, 80, 78, 71, 0, 255]);
  await memory.remember("files", [
    "I moved to Lisbon in May.",
    { role: "user", content: "Look!", attachments: [{ mime: "image/png", bytes, caption: "A lighthouse." }] },
  ]);
  await memory.flush("files");
  assert.match(await memory.recallText("files", { query: "Where did I move to?" }), /^\[Memory\] .*Lisbon in May\./);
  const { messages } = await memory.listMessages("files");
  assert.deepEqual(await memory.getAttachment("files", messages[1]!.id, 0), bytes);
  await assert.rejects(memory.getAttachment("files", messages[0]!.id, 0), NotFound);
});

test("a backup and an export are restored", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ebbtide-"));
  try {
    await memory.remember("moved", "I moved to Lisbon in May.");
    await memory.flush("moved");
    await writeFile(join(folder, "backup"), await memory.backupAgent("moved"));
    const backup = await openAsBlob(join(folder, "backup"));
    await assert.rejects(memory.restoreAgent("moved", backup), Conflict);
    await assert.rejects(memory.restoreAgent("else", backup), Precondition);
    assert.equal((await memory.restoreAgent("moved", backup, { replace: true })).counts.messages, 1);
    await memory.importAgent("copy", await memory.exportAgent("moved"), { rename: true });
    assert.match((await memory.recall("copy", { query: "Where did I move to?" })).text, /Lisbon/);
    await assert.rejects(memory.exportAgent("nobody"), NotFound);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("events arrive while they are watched", async () => {
  await memory.openAgent("watched");
  const events = memory.watchEvents("watched", { after: -1 });
  const first = events.next();
  const stop = new AbortController();
  const writing = (async () => {
    // The stream begins with the next event, so messages are sent until it has begun.
    while (!stop.signal.aborted) {
      await memory.remember("watched", "Rain again.");
      await memory.flush("watched");
    }
  })();
  const { value } = await first;
  stop.abort();
  assert.equal(typeof value?.kind, "string");
  await events.return();
  await writing;
});
