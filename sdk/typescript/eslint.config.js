import eslint from "@eslint/js";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  eslint.configs.recommended,
  typescript.configs.strict,
  // The compiler finds names that aren't there in src, and the tests find their own.
  { rules: { "no-undef": "off" } },
);
