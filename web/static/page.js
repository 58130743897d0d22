// Moments in the reader's own time zone and manner, in the page's language. Without this they
// are in UTC.
const language = document.documentElement.lang;
const manners = [...navigator.languages.filter((l) => l.split("-")[0] === language), language];
const form = new Intl.DateTimeFormat(manners, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue;
  time.title = time.textContent;
  time.textContent = form.format(at);
}
