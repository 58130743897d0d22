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

// mails returns the e-mails in a directory, the newest first, without quoted-printable.
export const mails = async (dir) => {
  const files = (await readdir(dir).catch(() => [])).filter((f) => f.endsWith(".eml")); // others are half written
  const texts = await Promise.all(files.sort().reverse().map((f) => readFile(path.join(dir, f), "latin1")));
  const byte = (_, hex) => String.fromCharCode(parseInt(hex, 16));
  return texts.map((text) => Buffer.from(text.replace(/=\r?\n/g, "").replace(/=([0-9A-F]{2})/g, byte), "latin1").toString());
};

// mailedLink returns the link in the newest e-mail to an address that contains the words.
export const mailedLink = async (mail, to, words) => {
  for (;;) {
    for (const text of await mails(mail)) {
      const link = text.includes(to) && text.includes(words) && text.match(/http:\S+\/-\/confirm\?token=[\w-]+/);
      if (link) return link[0];
    }
    await later(50);
  }
};

// send fills a form in and submits it. It submits again if the service rejects that as too quick
// for a person, but not more often than the limit for forms allows. The form may be in a frame of the page.
export const send = async (page, form, fields, button) => {
  for (const [label, value] of Object.entries(fields)) await form.getByLabel(label, { exact: true }).fill(value);
  for (;;) {
    const posted = page.waitForResponse((r) => r.request().method() === "POST" && r.url().includes("/-/"));
    await form.getByRole("button", { name: button }).click();
    if ((await posted).status() !== 422) break;
    await later(500);
  }
  await form.getByRole("heading", { name: "Check your mailbox" }).waitFor();
};
