// Tests the widget in a real browser. The page belongs to another site than the service, and has
// its own strict policy. The browser blocks third-party cookies. With SHOTS the test also writes
// screenshots to that directory.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import { accessible, mailedLink, send } from "./common.js";

const { SERVICE, SITE, OTHER_SITE, CHROMIUM, PROFILE, MAIL, SHOTS } = process.env;

// The same setting as in chrome://settings/cookies.
await mkdir(path.join(PROFILE, "Default"), { recursive: true });
await writeFile(
  path.join(PROFILE, "Default", "Preferences"),
  JSON.stringify({ profile: { block_third_party_cookies: true, cookie_controls_mode: 1 } }),
);
const browser = await chromium.launchPersistentContext(PROFILE, {
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu"],
  locale: "en-US",
  viewport: { width: 1000, height: 800 },
});
browser.setDefaultTimeout(20_000);

const complaints = [];
const visit = async (address) => {
  const page = await browser.newPage();
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
  page.on("pageerror", (e) => complaints.push(String(e)));
  await page.goto(address);
  return page;
};
const told = (what) => console.log(`ok: ${what}`);
const shoot = (page, name) => SHOTS && page.screenshot({ path: path.join(SHOTS, `widget-${name}.png`) });

const page = await visit(SITE);
const button = page.getByRole("button", { name: /^Feedback/ });
const dialog = page.getByRole("dialog");
const frame = page.frameLocator("iframe");
const closer = dialog.getByRole("button", { name: "Close" });

// The button, and the dialog that it opens.
await button.waitFor();
assert.equal(await button.getAttribute("aria-expanded"), "false");
await button.focus();
await page.keyboard.press("Enter");
await frame.getByRole("link", { name: "Dark mode" }).waitFor();
assert.equal(await button.getAttribute("aria-expanded"), "true");
assert.deepEqual((await dialog.locator("iframe").getAttribute("sandbox")).split(" ").filter((s) => s.includes("top")), []);
await shoot(page, "desktop-light");
told("the button opens the board in a frame");

// Search, open a post, go back.
await frame.getByRole("searchbox").fill("light");
await frame.getByRole("button", { name: "Search" }).click();
await frame.getByRole("link", { name: "Dark mode" }).waitFor({ state: "detached" });
await frame.getByRole("link", { name: "Light mode" }).click();
await frame.getByRole("heading", { name: "Comments" }).waitFor();
const elsewhere = frame.getByRole("link", { name: "Open the whole board in a new window" });
const popup = page.waitForEvent("popup");
await elsewhere.click();
await (await popup).waitForURL(`${SERVICE}/b/northwind/ideas/light-mode`);
await (await popup).close();
told("it is searched, shows a post, and leads to the whole board in a window of its own");

// Write a post in the frame with only the keyboard. The link in the e-mail publishes it, on the board's own page.
const asked = [];
page.on("request", async (r) => r.method() === "POST" && r.url().startsWith(`${SERVICE}/w/`) && asked.push(await r.allHeaders()));
await frame.getByRole("link", { name: "Posts" }).click();
await frame.getByRole("link", { name: "Write a post" }).press("Enter");
await frame.getByLabel("Title").focus();
do await page.keyboard.press("Escape");
while (await dialog.isVisible());
await button.press("Enter");
await frame.getByLabel("Title").fill("Offline mode");
await frame.getByLabel("Title").press("Escape");
assert.equal(await dialog.isVisible(), true, "nobody loses what was written by Escape");
const post = { Text: "For trains.", "Your name": "Rosa", "Your e-mail address": "rosa@example.com" };
await send(page, frame, post, "Write a post");
for (const headers of asked) {
  assert.equal(headers.origin, SERVICE);
  assert.equal(headers["sec-fetch-site"], "same-origin");
  assert.equal(headers.cookie, undefined);
}
assert.ok(asked.length > 0);
await frame.getByRole("link", { name: "Posts" }).last().click();
await frame.getByRole("link", { name: "Dark mode" }).waitFor();
assert.equal(await frame.getByRole("link", { name: "Offline mode" }).count(), 0, "not before it is confirmed");
const mailed = await mailedLink(MAIL, "rosa@example.com", "Confirm your post");
assert.ok(mailed.startsWith(`${SERVICE}/b/northwind/-/confirm?`));
const own = await visit(mailed);
await own.getByRole("button", { name: "Confirm" }).click();
await own.getByRole("heading", { name: "Your post is published" }).waitFor();
await own.close();
// A visitor whom the board knows is unknown in the frame.
assert.equal((await browser.cookies()).length, 1);
do await frame.getByRole("link", { name: "Posts" }).click();
while (!(await frame.getByRole("link", { name: "Offline mode" }).count()));
await frame.getByRole("link", { name: "Offline mode" }).click();
await frame.getByRole("link", { name: "Vote for this" }).click();
await frame.getByLabel("Your e-mail address").waitFor();
await send(page, frame, { "Your name": "Rosa", "Your e-mail address": "rosa@example.com" }, "Vote for this");
await browser.clearCookies();
await frame.getByRole("link", { name: "Posts" }).last().click();
await frame.getByRole("link", { name: "Dark mode" }).waitFor();
told("a post is written in the frame and published by the link in an e-mail");

// The keyboard: the focus stays inside the dialog. Escape inside the frame closes the dialog, and the focus returns.
await closer.focus();
for (let i = 0; i < 40; i++) {
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.id), "outside", "the focus left the dialog");
}
await frame.getByRole("link", { name: "Posts" }).focus();
await page.keyboard.press("Escape");
await dialog.waitFor({ state: "hidden" });
assert.equal(await button.evaluate((b) => b.getRootNode().activeElement === b), true, "the focus is back on the button");
await button.click();
await closer.focus();
await page.keyboard.press("Escape");
await dialog.waitFor({ state: "hidden" });
told("the keyboard alone is enough");

// News in the changelog: no dot at first, a dot after an entry, no dot after it was read.
assert.equal(await page.locator(".dot").isVisible(), false);
assert.equal(await page.evaluate(async () => (await fetch("/publish", { method: "POST" })).status), 204);
// The browser keeps the widget's settings for a minute.
const devtools = await browser.newCDPSession(page);
await devtools.send("Network.enable");
await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
do {
  await page.reload();
  await button.waitFor();
} while (!(await page.locator(".dot").isVisible()));
await page.getByRole("button", { name: "Feedback, with news in the changelog" }).click();
await frame.getByRole("link", { name: "It is dark" }).waitFor();
await page.locator(".dot").waitFor({ state: "hidden" });
await page.keyboard.press("Escape");
await page.reload();
await button.waitFor();
assert.equal(await page.locator(".dot").isVisible(), false, "it was read");
told("an entry of the changelog dots the button until it is read");

// Open and close from the page's own script.
await page.evaluate(() => window.Earshot("open"));
await dialog.waitFor();
await page.evaluate(() => window.Earshot("close"));
await dialog.waitFor({ state: "hidden" });
const { good, bad } = await page.evaluate(async () => ({
  good: await window.Earshot("identify", window.token),
  bad: await window.Earshot("identify", "a.b.c"),
}));
assert.deepEqual([good, bad], [true, false]);
const refusal = complaints.splice(0).join("\n");
assert.match(refusal, /Earshot: identify: The token isn't a JWT/);
told("the page opens and closes it and identifies who looks");

// Reduced motion, the dark scheme, a small screen.
await page.emulateMedia({ reducedMotion: "reduce", colorScheme: "dark" });
await button.click();
assert.equal(await dialog.evaluate((d) => getComputedStyle(d).animationName), "none");
const [shade] = (await dialog.evaluate((d) => getComputedStyle(d).backgroundColor)).match(/\d+/);
assert.ok(Number(shade) < 64, "dark");
await page.setViewportSize({ width: 360, height: 640 });
const box = await dialog.boundingBox();
assert.deepEqual([box.x, box.y, box.width], [0, 0, 360]);
await shoot(page, "phone-dark");
told("it keeps to what the reader prefers");

// The forms, light and dark, as narrow as a small phone. bypassCSP, because their policy blocks axe like any other script.
const looks = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
for (const colorScheme of ["light", "dark"]) {
  const context = await looks.newContext({ viewport: { width: 320, height: 640 }, colorScheme, locale: "en-US", bypassCSP: true });
  const small = await context.newPage();
  for (const at of ["", "/dark-mode", "/-/new", "/dark-mode/-/vote", "/dark-mode/-/comment", "/-/sent"]) {
    await small.goto(`${SERVICE}/w/northwind/ideas${at}`);
    if (at === "/-/new") {
      await small.locator("form.fill").evaluate((form) => (form.noValidate = true));
      await small.getByRole("button", { name: "Write a post" }).click();
      await small.getByRole("alert").waitFor();
    }
    await accessible(small, `${at}, ${colorScheme}`);
    assert.equal(await small.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${at}, ${colorScheme}: it fits`);
  }
  await context.close();
}
await looks.close();
told("its pages have no violation, light and dark, on a small phone");

// No cookies, and no data in the storage of the frame.
assert.deepEqual(await browser.cookies(), []);
const inside = page.frames().find((f) => f.url().startsWith(SERVICE));
const kept = await inside.evaluate(() => {
  try {
    return localStorage.length;
  } catch {
    return 0;
  }
});
assert.equal(kept, 0);
assert.deepEqual(complaints, [], "nothing violates the policies of the page and of the frame");
told("there are no cookies, and no policy is violated");

// Another site can't embed the widget, and gets the reason.
const other = await visit(OTHER_SITE);
await assert.doesNotReject(async () => {
  while (!complaints.some((c) => c.includes("PUT /v1/widget/origins"))) await other.waitForEvent("console");
});
assert.equal(await other.getByRole("button", { name: /^Feedback/ }).count(), 0);
const framed = await other.evaluate(async (address) => {
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
  await new Promise((loaded) => frame.addEventListener("load", loaded));
  return true;
}, `${SERVICE}/w/northwind/ideas`);
assert.equal(framed, true);
assert.ok(!other.frames().some((f) => f.url().startsWith(`${SERVICE}/w/`)), "the browser shows it to nobody there");
told("another site can't hold it");

await browser.close();
