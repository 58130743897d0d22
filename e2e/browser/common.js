// Helpers of the browser tests.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { setTimeout as later } from "node:timers/promises";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// accessible checks a page or a frame with axe.
export const accessible = async (page, what) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), [], what);
};

// mailedLink returns the link in the newest e-mail to an address that contains the words.
export const mailedLink = async (mail, to, words) => {
  for (;;) {
    for (const file of (await readdir(mail).catch(() => [])).filter((f) => f.endsWith(".eml")).sort().reverse()) { // others are half written
      const text = await readFile(path.join(mail, file), "utf8");
      if (!text.includes(to) || !text.includes(words)) continue;
      const body = text.replace(/=\r?\n/g, "").replace(/=3D/g, "=");
      const found = body.match(/http:\S+\/-\/confirm\?token=[\w-]+/);
      if (found) return found[0];
    }
    await later(50);
  }
};

// send fills a form in and submits it. It submits again if the service rejects that as too quick
// for a person. The form may be in a frame of the page.
export const send = async (page, form, fields, button) => {
  for (const [label, value] of Object.entries(fields)) await form.getByLabel(label, { exact: true }).fill(value);
  let answer;
  do {
    const posted = page.waitForResponse((r) => r.request().method() === "POST" && r.url().includes("/-/"));
    await form.getByRole("button", { name: button }).click();
    answer = await posted;
  } while (answer.status() === 422);
  await form.getByRole("heading", { name: "Check your mailbox" }).waitFor();
};
