// What ESLint checks in every TypeScript and JavaScript file. Layout is Prettier's; only the length
// of comments, which Prettier leaves alone, is checked here.
import js from '@eslint/js';
import stylistic from '@stylistic/eslint-plugin';
import globals from 'globals';
import typescript from 'typescript-eslint';

export default typescript.config(
  { ignores: ['.build/**', 'dist/**', '**/node_modules/**', '**/dist/**'] },
  js.configs.recommended,
  ...typescript.configs.strict,
  {
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { '@stylistic': stylistic },
    rules: {
      '@stylistic/max-len': [
        'error',
        {
          code: 100,
          ignoreUrls: true,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreRegExpLiterals: true,
        },
      ],
      // An index that was just checked needs no second branch.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Overloads carry a doc comment each.
      '@typescript-eslint/unified-signatures': 'off',
      '@typescript-eslint/no-dynamic-delete': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      eqeqeq: 'error',
      'no-console': 'error',
      'prefer-const': 'error',
    },
  },
  {
    files: ['tests/**', 'tools/**', 'examples/**'],
    rules: {
      'no-console': 'off',
      '@typescript-eslint/no-invalid-void-type': 'off',
    },
  },
);
