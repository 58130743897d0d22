// Plays public boards in a real browser: as end-users without scripts, who vote, post and comment and
// confirm it by the e-mails in MAIL, and then page by page with axe, light and dark, small and large.
// With SHOTS it also writes a picture of each page there.
import assert from "node:assert/strict";
import path from "node:path";
import { chromium } from "playwright-core";
import { accessible, mailedLink, send } from "./common.js";

const { SERVICE, CHROMIUM, MAIL, SHOTS } = process.env;
const home = `${SERVICE}/b/northwind`;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
const told = (what) => console.log(`ok: ${what}`);

// visitor is a browser of its own, without scripts.
const visitor = async () => {
  const context = await browser.newContext({ javaScriptEnabled: false, locale: "en-US" });
  context.setDefaultTimeout(20_000);
  return context.newPage();
};

const link = (to, words) => mailedLink(MAIL, to, words);

const confirm = async (page, address, heading, optIn) => {
  await page.goto(address);
  assert.equal(await page.getByRole("checkbox").isChecked(), false, "the box is ticked by people alone");
  if (optIn) await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Confirm" }).click();
  await page.getByRole("heading", { name: heading }).waitFor();
};

// A vote, without the opt-in.
const quentin = await visitor();
await quentin.goto(home);
await quentin.getByRole("link", { name: "Ideas" }).click();
await quentin.getByRole("searchbox").fill("dark");
await quentin.getByRole("button", { name: "Search" }).click();
assert.equal(await quentin.getByRole("link", { name: "Light mode" }).count(), 0);
await quentin.getByRole("link", { name: "Dark mode" }).click();
await quentin.getByRole("link", { name: "Vote for this" }).click();
await send(quentin, quentin, { "Your name": "Quentin", "Your e-mail address": "quentin@example.com" }, "Vote for this");
assert.deepEqual(await quentin.context().cookies(), [], "no cookies before somebody is known");
const used = await link("quentin@example.com", "Confirm your vote");
await confirm(quentin, used, "Your vote counts");
await quentin.getByRole("link", { name: "Dark mode" }).click();
await quentin.getByText("1 vote", { exact: true }).waitFor();
await quentin.goto(used);
await quentin.getByRole("heading", { name: "This link does nothing any more" }).waitFor();
told("a vote counts once its link was used, and once");

// Who is known on the browser isn't asked again.
await quentin.goto(`${home}/ideas/dark-mode`);
await quentin.getByRole("link", { name: "Write a comment" }).click();
await quentin.getByLabel("Text").fill("At night, please.");
await quentin.getByRole("button", { name: "Write a comment" }).click();
await quentin.getByText("At night, please.").waitFor();
await quentin.getByRole("button", { name: "Take my vote back" }).click();
await quentin.getByText("0 votes", { exact: true }).waitFor();
await quentin.getByRole("button", { name: "Vote for this" }).click();
await quentin.getByText("1 vote", { exact: true }).waitFor();
await quentin.getByRole("button", { name: "Forget me" }).click();
assert.deepEqual(await quentin.context().cookies(), []);
told("who is known on the browser acts at once, and can be forgotten");

// A post, with the opt-in.
const rosa = await visitor();
await rosa.goto(`${home}/ideas`);
await rosa.getByRole("link", { name: "Write a post" }).click();
const post = { Title: "Offline mode", Text: "For trains.", "Your name": "Rosa", "Your e-mail address": "rosa@example.com" };
await send(rosa, rosa, post, "Write a post");
await confirm(rosa, await link("rosa@example.com", "Confirm your post"), "Your post is published", true);
await rosa.getByRole("link", { name: "Offline mode" }).click();
await rosa.getByText("For trains.").waitFor();
told("a post is published once its link was used");

// Every page and state, by axe and by the browser's own timings.
const states = {
  workspace: [home],
  board: [`${home}/ideas`],
  search: [`${home}/ideas?q=nothing+like+it`],
  roadmap: [`${home}/ideas/-/roadmap`],
  changelog: [`${home}/ideas/-/changelog`],
  post: [`${home}/ideas/dark-mode`],
  vote: [`${home}/ideas/dark-mode/-/vote`],
  comment: [`${home}/ideas/dark-mode/-/comment`],
  write: [`${home}/ideas/-/new`],
  refused: [`${home}/ideas/-/new`, async (page) => {
    await page.locator("form.fill").evaluate((form) => (form.noValidate = true));
    await page.getByRole("button", { name: "Write a post" }).click();
    await page.getByRole("alert").waitFor();
  }],
  sent: [`${home}/-/sent`],
  over: [used],
  missing: [`${home}/nothing`],
};
const looks = [
  { name: "desktop-light", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "phone-dark", viewport: { width: 320, height: 640 }, colorScheme: "dark" },
];
for (const { name, ...look } of looks) {
  // The policy keeps axe out as it does all others.
  const context = await browser.newContext({ ...look, locale: "en-US", bypassCSP: true });
  context.setDefaultTimeout(20_000);
  let slowest = 0;
  for (const [state, [address, act]] of Object.entries(states)) {
    const page = await context.newPage();
    await page.goto(address);
    if (act) await act(page);
    await accessible(page, `${state}, ${name}`);
    const { shift, paint, wide } = await page.evaluate(() => new Promise((done) => {
      const found = { shift: 0, paint: 0, wide: document.documentElement.scrollWidth > innerWidth };
      new PerformanceObserver((l) => l.getEntries().forEach((e) => (found.shift += e.value))).observe({ type: "layout-shift", buffered: true });
      new PerformanceObserver((l) => {
        found.paint = l.getEntries().at(-1).startTime;
        done(found);
      }).observe({ type: "largest-contentful-paint", buffered: true });
    }));
    assert.equal(shift, 0, `${state}, ${name}: nothing moves`);
    assert.equal(wide, false, `${state}, ${name}: it fits without scrolling to the side, as a page at 200 % has to`);
    slowest = Math.max(slowest, paint);
    if (SHOTS) await page.screenshot({ path: path.join(SHOTS, `${state}-${name}.png`), fullPage: true });
    await page.close();
  }
  await context.close();
  told(`${Object.keys(states).length} pages have no violation, ${name}; the largest paint came after ${Math.round(slowest)} ms at most`);
}

await browser.close();
