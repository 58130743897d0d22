// What a program pays for the package: all of its JavaScript, compressed.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);
const scripts = ["", "generated/"].flatMap((folder) =>
  readdirSync(new URL(folder, dist))
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(new URL(folder + name, dist))),
);
const bytes = Buffer.concat(scripts);
console.log(`dist: ${bytes.length} bytes of JavaScript, ${gzipSync(bytes).length} gzipped`);
