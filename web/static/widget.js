// The widget: a button that opens a public board in a frame. docs/widget.md tells how it is used.
(() => {
  "use strict";
  const script = document.currentScript || document.querySelector('script[data-workspace][src$="/widget.js"]');
  if (!script || window.Earshot?.ready) return;
  const service = new URL(script.src).origin;
  const { workspace, board, button: wanted } = script.dataset;
  const warn = (text) => console.warn(`Earshot: ${text}`);
  const help = `Is the board public, and is ${location.origin} among the widget's origins (PUT /v1/widget/origins)?`;

  // What was read of the changelog: in the page's own storage, or in memory where that is blocked.
  const key = `earshot:${workspace}/${board}`;
  let remembered = null;
  const seen = () => {
    try {
      return localStorage.getItem(key) ?? remembered;
    } catch {
      return remembered;
    }
  };
  const remember = (newest) => {
    remembered = newest;
    try {
      localStorage.setItem(key, newest);
    } catch {
      // It is blocked, or full.
    }
  };

  const at = (root) => `${service}${root}${encodeURIComponent(workspace)}/${encodeURIComponent(board)}`;
  const frameAt = at("/w/");

  const css = ({ light, dark }) => `
:host { --accent: ${light.accent}; --on: ${light.onAccent}; --ground: #fff; --text: #1b1f27; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :host { --accent: ${dark.accent}; --on: ${dark.onAccent}; --ground: #14171d; --text: #e9ecf1; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button { font: 600 1rem/1.2 system-ui, sans-serif; border: 0; cursor: pointer; }
button:focus-visible { outline: 3px solid var(--text); outline-offset: 2px; box-shadow: 0 0 0 2px var(--ground); }
.open { position: fixed; inset: auto 1rem 1rem auto; z-index: 2147483000; min-height: 3rem; padding: .75rem 1.25rem; border-radius: 1.5rem; background: var(--accent); color: var(--on); box-shadow: 0 2px 12px #0004; }
.dot { position: absolute; top: .1rem; right: .1rem; width: .9rem; height: .9rem; border-radius: 50%; background: #d92d20; border: 2px solid var(--ground); }
dialog { position: fixed; inset: auto 1rem 1rem auto; width: min(26rem, 100vw - 2rem); height: min(40rem, 100dvh - 2rem); margin: 0; padding: 0; border: 1px solid #8b909b; border-radius: 12px; overflow: hidden; background: var(--ground); color: var(--text); box-shadow: 0 8px 40px #0006; }
dialog::backdrop { background: #0003; }
.close { position: absolute; top: .4rem; right: .4rem; z-index: 1; width: 2.75rem; height: 2.75rem; border-radius: 8px; background: var(--ground); color: var(--text); }
iframe { display: block; width: 100%; height: 100%; border: 0; }
@media (max-width: 30rem) { dialog { inset: 0; width: 100vw; max-width: none; height: 100dvh; max-height: none; border: 0; border-radius: 0; } }
@media (prefers-reduced-motion: no-preference) { dialog[open] { animation: rise .15s ease-out; } @keyframes rise { from { opacity: 0; transform: translateY(1rem); } } }
@media (forced-colors: active) { .open, .close { border: 1px solid; } }
@media print { .open { display: none; } }`;

  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    made.append(...children);
    return made;
  };

  let shown = null; // what there is to open and close, once the service has answered
  let openWhenShown = false;

  const show = (settings) => {
    const host = element("div", {});
    const root = host.attachShadow({ mode: "open" });
    // Not a style element: the page's policy may not allow any.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css(settings));
    root.adoptedStyleSheets = [sheet];

    const dot = element("span", { class: "dot", hidden: "" });
    const opener = element("button", { class: "open", type: "button", "aria-haspopup": "dialog", "aria-expanded": "false" }, settings.button, dot);
    const closer = element("button", { class: "close", type: "button", "aria-label": settings.close }, "\u00d7");
    const frame = element("iframe", {
      title: settings.title,
      // Its origin is the service's and not the page's, so that it can't reach the page; it keeps
      // that origin, because by it both check whom they talk to.
      sandbox: "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox",
      referrerpolicy: "no-referrer",
    });
    const dialog = element("dialog", { "aria-label": settings.title }, closer);
    if (wanted === "none") opener.hidden = true;
    root.append(opener, dialog);

    const news = () => settings.changelog && settings.newest > (seen() ?? "");
    const mark = () => {
      dot.hidden = !news();
      if (news()) opener.setAttribute("aria-label", settings.unread);
      else opener.removeAttribute("aria-label");
    };
    // Who comes for the first time has missed nothing.
    if (seen() === null) remember(settings.newest);
    mark();

    let before = null;
    const open = () => {
      if (dialog.open) return;
      before = document.activeElement === host ? root.activeElement : document.activeElement;
      if (news()) frame.src = `${frameAt}/-/changelog`;
      else if (!frame.src) frame.src = frameAt;
      if (!frame.isConnected) dialog.append(frame); // with its address: an empty one would be of the page's origin
      dialog.showModal(); // the browser keeps the focus inside, and closes it by Escape
      opener.setAttribute("aria-expanded", "true");
    };
    const close = () => dialog.close();
    dialog.addEventListener("close", () => {
      opener.setAttribute("aria-expanded", "false");
      (before?.isConnected && before !== document.body ? before : opener).focus();
    });
    dialog.addEventListener("click", (event) => event.target === dialog && close());
    opener.addEventListener("click", open);
    closer.addEventListener("click", close);

    frame.addEventListener("load", () => frame.contentWindow.postMessage({ earshot: "hello" }, service));
    addEventListener("message", (event) => {
      if (event.origin !== service || event.source !== frame.contentWindow) return;
      if (event.data?.earshot === "close") close();
      if (event.data?.earshot === "seen" && typeof event.data.newest === "string") {
        remember(event.data.newest);
        mark();
      }
    });

    document.body.append(host);
    shown = { open, close };
    if (openWhenShown) open();
  };

  const identify = async (token) => {
    try {
      const answer = await fetch(`${service}/widget/${encodeURIComponent(workspace)}/identify`, {
        method: "POST",
        credentials: "omit",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ token }),
      });
      if (!answer.ok) warn(`identify: ${(await answer.json()).error.message}`);
      return answer.ok;
    } catch {
      warn(`identify got no answer. ${help}`);
      return false;
    }
  };

  const commands = {
    open: () => (shown ? shown.open() : void (openWhenShown = true)),
    close: () => (shown ? shown.close() : void (openWhenShown = false)),
    identify,
  };
  const run = (command, ...given) => {
    if (Object.hasOwn(commands, command)) return commands[command](...given);
    warn(`there is no command ${command}`);
  };

  const start = async () => {
    try {
      const answer = await fetch(at("/widget/"), { credentials: "omit" });
      if (!answer.ok) throw new Error(answer.status);
      show(await answer.json());
    } catch (error) {
      warn(`the widget of ${workspace}/${board} can't be shown (${error.message}). ${help}`);
    }
  };

  // What the page has called before this script was there.
  const waiting = window.Earshot?.q ?? [];
  window.Earshot = Object.assign(run, { ready: true });
  if (!workspace || !board) {
    warn("the script tag needs data-workspace and data-board");
    return;
  }
  for (const call of waiting) run(...call);
  if (document.body) start();
  else addEventListener("DOMContentLoaded", start);
})();
