// Takes the pictures of docs/images from a running demo: public pages, an e-mail, and Temporal's web UI.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { chromium } from "playwright-core";
import { mails } from "./common.js";

const { EARSHOT_BASE_URL, EARSHOT_API_KEY, EARSHOT_DIR, DATABASE_URL, TEMPORAL_UI_URL, WEBHOOK, BROKEN, CHROMIUM, IMAGES } = process.env;
// The site with the widget has no network address, so the browser would ask whether it may reach this machine.
const browser = await chromium.launch({
  executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-features=LocalNetworkAccessChecks"],
});

const api = async (method, address, body) => {
  const answer = await fetch(EARSHOT_BASE_URL + address, {
    method, headers: { Authorization: `Bearer ${EARSHOT_API_KEY}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body),
  });
  assert.ok(answer.ok, `${method} ${address}: ${answer.status}`);
  return (await answer.json()).data;
};

const shoot = async (page, name, options) => {
  await page.screenshot({ path: path.join(IMAGES, `${name}.png`), ...options });
  console.log(`  ${name}.png`);
};

// Public pages, on two screens and in two colour schemes.
const board = `${EARSHOT_BASE_URL}/b/tidewater/ideas`;
const pages = {
  "public-board": board,
  "public-post": `${board}/swap-shifts-without-asking-a-manager`,
  "public-roadmap": `${board}/-/roadmap`,
};
const screens = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
for (const [screen, viewport] of Object.entries(screens)) {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport, colorScheme, locale: "en-US" });
    const page = await context.newPage();
    for (const [name, address] of Object.entries(pages)) {
      if (name === "public-roadmap" && screen === "phone") continue;
      await page.goto(address);
      await shoot(page, `${name}-${screen}-${colorScheme}`);
    }
    await context.close();
  }
}

// Forms, and the widget on a page of another site.
await api("PUT", "/v1/widget/origins", { origins: ["http://localhost:3000"] });
const site = `<!doctype html><meta name="viewport" content="width=device-width"><title>Planner</title><h1>Planner</h1>
  <script src="${EARSHOT_BASE_URL}/widget.js" data-workspace="tidewater" data-board="ideas" async></script>`;
const small = [["desktop", "light"], ["phone", "dark"]];
for (const [screen, colorScheme] of small) {
  const context = await browser.newContext({ viewport: screens[screen], colorScheme, locale: "en-US" });
  const page = await context.newPage();
  await page.goto(screen === "desktop" ? `${board}/-/new` : `${board}/swap-shifts-without-asking-a-manager/-/vote`);
  await shoot(page, `public-form-${screen}-${colorScheme}`);
  page.on("console", (m) => m.type() === "error" && console.error(m.text()));
  await page.route("http://localhost:3000/", (route) => route.fulfill({ contentType: "text/html", body: site }));
  await page.goto("http://localhost:3000/");
  await page.getByRole("button", { name: /^Feedback/ }).click();
  await page.frameLocator("iframe").getByRole("link", { name: "Write a post" }).waitFor();
  await shoot(page, `widget-${screen}-${colorScheme}`);
  await context.close();
}

// Temporal's web UI: runs of deliveries, of a scheduled publication and of a recovery, and the forms of an operator.
const webhook = await api("GET", `/v1/webhooks/${WEBHOOK}`);
const boardID = (await api("GET", "/v1/boards")).find((b) => b.slug === "ideas").id;
const entries = await api("GET", `/v1/boards/${boardID}/changelog`);
const scheduled = entries.find((e) => new Date(e.publishedAt) > new Date());
const recovery = await api("POST", `/v1/webhooks/${webhook.id}/recover`, { since: "2020-01-01T00:00:00Z" });
// A replay has a run of its own, is refused too, and waits for its retry.
const [failed] = await api("GET", `/v1/webhooks/${webhook.id}/deliveries?status=failed`);
let delivery = await api("POST", `/v1/webhooks/${webhook.id}/deliveries/${failed.id}/replay`);
while (delivery.attemptCount < 2) {
  await later(200);
  delivery = await api("GET", `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}`);
}

const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US", timezoneId: "UTC" });
const page = await context.newPage();
const ui = `${TEMPORAL_UI_URL}/namespaces/default`;
// open shows the page of a run. clip is the part of it without the navigation.
const open = async (id) => {
  await page.goto(`${ui}/workflows/${id}`);
  await page.getByText("Back to Workflows").waitFor();
};
const clip = async (height) => {
  const { x, y } = await page.getByText("Back to Workflows").boundingBox();
  return { x: x - 30, y: y - 20, width: 1440 - (x - 30), height };
};
// run shoots the head of a run's page, with the tab that says how far the run is.
const run = async (name, id) => {
  await open(id);
  await page.getByText("User Metadata").click();
  await page.getByText("Current Details").waitFor();
  await page.getByText("for freshness").first().waitFor(); // the details are loaded
  await shoot(page, name, { clip: await clip(440) });
};
await run("delivery", delivery.id);
await run("streak", BROKEN);
await run("publication", scheduled.id);
await run("recovery", recovery.id);

await open(delivery.id);
const visible = (found) => found.filter({ visible: true }).first();
await visible(page.getByRole("button", { name: "More Actions" })).click();
await visible(page.getByRole("menuitem", { name: "Send an Update" })).click();
await visible(page.getByText("Update ID")).waitFor();
await shoot(page, "update", { clip: { x: 64, y: 48, width: 1376, height: 680 } });

await page.goto(`${ui}/workflows/start-workflow?workflowId=replay-${delivery.id}&taskQueue=earshot&workflowType=replay_delivery`);
await page.getByRole("heading", { name: "Start a Workflow" }).waitFor();
await shoot(page, "replay", { clip: { x: 64, y: 48, width: 1050, height: 852 } });

await page.goto(`${ui}/workflows?query=${encodeURIComponent('WorkflowType = "recover_webhook"')}`);
await page.getByRole("link", { name: recovery.id }).waitFor();
await shoot(page, "recoveries", { clip: { x: 64, y: 48, width: 1376, height: 300 } });

// An e-mail to an end-user, and the page of its link. A window collects changes for ten minutes, so the first change becomes older.
const posts = await api("GET", `/v1/boards/${boardID}/posts?limit=100`);
const titles = ["Dark mode", "Swap shifts without asking a manager"];
const ship = (title) => api("PATCH", `/v1/posts/${posts.find((p) => p.title === title).id}`, { status: "shipped" });
await ship(titles[0]);
execFileSync("psql", [DATABASE_URL, "-c", "UPDATE subscriber_updates SET created_at = created_at - interval '10 minutes'"]);
await ship(titles[1]);
let mail;
while (!mail) {
  await later(200);
  mail = (await mails(path.join(EARSHOT_DIR, "mail"))).find((m) => titles.every((title) => m.includes(title)));
}
const [html] = mail.match(/<!DOCTYPE html>[^]*<\/html>/);
const preferences = html.match(/http:[^"]+preferences[^"]+/)[0].replaceAll("&amp;", "&");
for (const [screen, colorScheme] of small) {
  const context = await browser.newContext({ viewport: screens[screen], colorScheme, locale: "en-US" });
  const page = await context.newPage();
  await page.goto(preferences);
  await shoot(page, `preferences-${screen}-${colorScheme}`);
  await page.setViewportSize({ width: 640, height: 480 });
  await page.goto("about:blank"); // the page's policy forbids to replace its content
  await page.setContent(html);
  await shoot(page, `subscriber-mail-${colorScheme}`);
  await context.close();
}
await browser.close();
