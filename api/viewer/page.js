// Elements would write an API key that is typed under "Try it" into localStorage, for good and for everybody who
// uses this browser later. Ignored here, it stays in the page's memory until the page is left.
{
  const keys = "TryIt_securitySchemeValues";
  const setItem = Storage.prototype.setItem;
  Storage.prototype.setItem = function (name, value) {
    if (name !== keys) setItem.call(this, name, value);
  };
  localStorage.removeItem(keys); // what was kept before
}
