// What a program pays for the package: all of its JavaScript without comments, compressed.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);
const scripts = ["", "generated/"].flatMap((folder) =>
  readdirSync(new URL(folder, dist))
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(new URL(folder + name, dist), "utf8").replace(/^ *\/\*\*.*?\*\/\n/gms, "")),
);
const text = scripts.join("");
console.log(`dist: ${text.length} bytes of JavaScript without comments, ${gzipSync(text).length} gzipped`);
