// Tests public boards in a real browser. End-users without scripts vote, post and comment, and
// confirm it with the e-mails in MAIL. The API exports and erases one of them. Then axe checks page
// after page, light and dark, small and large. With SHOTS the test also writes a screenshot of each
// page to that directory.
import assert from "node:assert/strict";
import path from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { chromium } from "playwright-core";
import { accessible, mailedLink, send } from "./common.js";

const { SERVICE, API_KEY, CHROMIUM, MAIL, PREFERENCES, SHOTS } = process.env;
const home = `${SERVICE}/b/northwind`;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
const told = (what) => console.log(`ok: ${what}`);

// visitor opens a page in a separate browser context, without scripts.
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

// api sends a request to the API with the key.
const api = async (method, address, body) => {
  const answer = await fetch(SERVICE + address, {
    method, headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body),
  });
  assert.ok(answer.ok, `${method} ${address}: ${answer.status}`);
  return (await answer.json()).data;
};

// finished waits for the end of an export or an erasure.
const finished = async ({ id }) => {
  for (;;) {
    const receipt = await api("GET", `/v1/subject-requests/${id}`);
    if (receipt.status !== "running") return receipt;
    await later(100);
  }
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
await quentin.getByRole("heading", { name: "This link is no longer valid" }).waitFor();
told("a vote counts once its link was used, and once");

// The browser of a known visitor asks for no name again.
await quentin.goto(`${home}/ideas/dark-mode`);
await quentin.getByRole("link", { name: "Write a comment" }).click();
await quentin.getByLabel("Text").fill("At night, please.");
await quentin.getByRole("button", { name: "Write a comment" }).click();
await quentin.getByText("At night, please.").waitFor();
await quentin.getByRole("button", { name: "Remove my vote" }).click();
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

// A vote with only the keyboard.
const kim = await visitor();
const focus = async (what) => {
  for (let i = 0; i < 50; i++) {
    await kim.keyboard.press("Tab");
    if (await what.and(kim.locator(":focus")).count()) return;
  }
  assert.fail(`the keyboard doesn't get to ${what}`);
};
await kim.goto(`${home}/ideas/dark-mode`);
await focus(kim.getByRole("link", { name: "Vote for this" }));
await kim.keyboard.press("Enter");
await focus(kim.getByLabel("Your name"));
await kim.keyboard.type("Kim");
await focus(kim.getByLabel("Your e-mail address"));
await kim.keyboard.type("kim@example.com");
const sent = kim.getByRole("heading", { name: "Check your mailbox" });
for (;;) { // again if the service rejects it as too quick for a person
  await focus(kim.getByRole("button", { name: "Vote for this" }));
  await Promise.all([kim.waitForNavigation(), kim.keyboard.press("Enter")]);
  if (await sent.count()) break;
  await later(500);
}
await kim.goto(await link("kim@example.com", "Confirm your vote"));
await focus(kim.getByRole("button", { name: "Confirm" }));
await kim.keyboard.press("Enter");
await kim.getByRole("heading", { name: "Your vote counts" }).waitFor();
told("the keyboard alone is enough");

// A visitor who wants a copy of her data, and then its erasure.
const vera = await visitor();
const contacts = () => api("GET", "/v1/contacts?email=vera@example.com");
await vera.goto(`${home}/ideas/-/new`);
const wish = { Title: "A calendar", Text: "For my garden.", "Your name": "Vera", "Your e-mail address": "vera@example.com" };
await send(vera, vera, wish, "Write a post");
await confirm(vera, await link("vera@example.com", "Confirm your post"), "Your post is published", true);
await vera.goto(`${home}/ideas/light-mode`);
await vera.getByRole("link", { name: "Write a comment" }).click();
await vera.getByLabel("Text").fill("At noon, please.");
await vera.getByRole("checkbox").check();
await vera.getByRole("button", { name: "Write a comment" }).click();
await vera.getByText("At noon, please.").waitFor();
const [{ id: person }] = await contacts();
const exported = await finished(await api("POST", `/v1/contacts/${person}/export`));
const records = await api("GET", `/v1/subject-requests/${exported.id}/records?limit=100`);
const written = records.filter(({ kind }) => kind === "post" || kind === "comment").map(({ record }) => record.body.text);
assert.deepEqual(written.sort(), ["At noon, please.", "For my garden."]);
assert.equal(records.find(({ kind }) => kind === "contact").record.email, "vera@example.com");

const erased = await finished(await api("POST", `/v1/contacts/${person}/erase`, { text: "blank" }));
assert.equal(erased.status, "completed");
const reader = await visitor();
await later(1000); // pages are cached for a second
assert.equal((await reader.goto(`${home}/ideas/a-calendar`)).status(), 404);
await reader.goto(`${home}/ideas`);
assert.equal(await reader.getByText("A calendar").count(), 0);
await reader.getByRole("link", { name: "[erased]" }).click();
await reader.getByRole("heading", { name: "[erased]" }).waitFor();
assert.equal(await reader.getByText("For my garden.").count(), 0);
await reader.goto(`${home}/ideas/light-mode`);
await reader.getByText("[erased]").waitFor();
assert.equal(await reader.getByText("At noon, please.").count(), 0);

// Her browser still knows her. That creates no data until she acts, and then only the data of the act.
await vera.goto(`${home}/ideas/dark-mode`);
await vera.getByText("vera@example.com").waitFor();
await vera.getByRole("link", { name: "Write a comment" }).click();
assert.deepEqual(await contacts(), []);
await vera.goto(`${home}/ideas/dark-mode`);
await vera.getByRole("button", { name: "Vote for this" }).click();
await vera.getByText("You have voted for this.").waitFor();
assert.deepEqual(await contacts(), [], "a vote without the opt-in makes no contact");
await vera.getByRole("button", { name: "Remove my vote" }).click();
await vera.getByRole("button", { name: "Forget me" }).click();
assert.deepEqual(await vera.context().cookies(), []);
told("who was exported and erased is gone from the pages, and comes back by nothing but a new act");

// Check every page and state with axe, and with the browser's timings.
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
  confirmed: [`${home}/ideas/dark-mode/-/confirmed/vote`],
  preferences: [PREFERENCES],
  chosen: [PREFERENCES, async (page) => {
    await page.getByLabel("All news of the changelog").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await page.getByLabel("All news of the changelog").isChecked(), true);
  }],
  missing: [`${home}/nothing`],
};
const looks = [
  { name: "desktop-light", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "phone-dark", viewport: { width: 320, height: 640 }, colorScheme: "dark" },
];
for (const { name, ...look } of looks) {
  // bypassCSP, because the policy blocks axe like any other script.
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
