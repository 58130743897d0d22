// Inside the widget's frame: tells the page around it, if that is of an allowed origin, what it
// can't see from there.
const { origins, newest } = document.body.dataset;
const allowed = origins.split(" ").filter(Boolean);
let around = null;

const tell = (what, more) => around && parent.postMessage({ earshot: what, ...more }, around);

addEventListener("message", (event) => {
  if (event.source !== parent || !allowed.includes(event.origin) || event.data?.earshot !== "hello") return;
  around = event.origin;
  if (newest) tell("seen", { newest });
});

// In a search with words Escape empties it.
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && !event.target.value) tell("close");
});
