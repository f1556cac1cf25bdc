// For everyone: no violation found by axe on any view, the keyboard alone, Russian, dark, narrow,
// calm.
import { createRequire } from 'node:module';
import type { Page } from '@playwright/test';
import { expect, test } from './lab.js';

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface Violation {
  readonly id: string;
  readonly nodes: readonly {
    readonly target: readonly string[];
    readonly failureSummary: string;
  }[];
}

async function violations(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: axePath });
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run: (options: unknown) => Promise<{ violations: Violation[] }> };
    };
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    return (await axe.run({ runOnly: tags })).violations;
  });
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')}: ${failureSummary}`),
  );
}

/** Everything that can be folded out, folded out. */
const openAll = (page: Page): Promise<void> =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll('details')) details.open = true;
  });

for (const colorScheme of ['light', 'dark'] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme });
    test('axe: the first screen, everything open', async ({ lab, page }) => {
      await lab.open();
      await lab.button('Verify now').click();
      await lab.button('Try all').click();
      await expect(page.locator('.outcome')).toHaveCount(8);
      await expect(page.getByTestId('verification')).toBeVisible();
      await openAll(page);
      await expect(page.locator('html')).toHaveAttribute('data-theme', colorScheme);
      expect(await violations(page)).toEqual([]);
    });
  });
}

test('axe: the key map, an empty cache, the toy model, errors, a trace', async ({ lab, page }) => {
  await lab.open();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await lab.button('Reset').click();
  await lab.rows(0);
  expect(await violations(page)).toEqual([]);
  const pending = page.waitForEvent('download');
  await lab.useToy();
  await lab.button('Prefill').click();
  await lab.rows(2);
  await lab.button('Trace (JSON)').click();
  const path = await (await pending).path();
  await lab.prompt('0 9');
  await page
    .getByTestId('trace-file')
    .setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{') });
  await expect(page.getByRole('alert')).toHaveCount(2);
  expect(await violations(page)).toEqual([]);
  await page.getByTestId('trace-file').setInputFiles(path);
  await expect(page.getByTestId('viewing')).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test.describe('360 px, Russian', () => {
  test.use({ viewport: { width: 360, height: 740 }, locale: 'ru-RU' });
  test('axe, no sideways scrolling, lang set, all controls in reach', async ({ lab, page }) => {
    await lab.open();
    await expect(page.locator('html')).toHaveAttribute('lang', 'ru');
    await expect(page).toHaveTitle('kvlens: лаборатория');
    await lab.button('Попробовать всё').click();
    await expect(page.locator('.outcome')).toHaveCount(8);
    await expect(page.locator('.outcome').first()).toContainText(
      'Decode возможен только после prefill',
    );
    await lab.button('Проверить').click();
    await expect(page.getByTestId('verification')).toContainText('Равны до бита');
    await openAll(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await lab.button('Следующий токен').last().click();
    await lab.rows(18);
    expect(await violations(page)).toEqual([]);
  });
});

test('language, theme and colours are remembered', async ({ lab, page }) => {
  await lab.open();
  await page.getByLabel('Русский').check({ force: true });
  await page.getByLabel('Тёмная').check({ force: true });
  await page.getByText('inferno', { exact: true }).click();
  await page.reload();
  await lab.ready();
  await expect(page.locator('html')).toHaveAttribute('lang', 'ru');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await expect(page.getByLabel('inferno')).toBeChecked();
});

test('no text of the page is left in English when it is in Russian', async ({ lab, page }) => {
  await lab.open();
  const english = await page.locator('main').innerText();
  await page.getByLabel('Русский').check({ force: true });
  await expect(page.locator('h1')).toContainText('Посмотрите');
  const russian = new Set(
    (await page.locator('main').innerText()).split('\n').map((line) => line.trim()),
  );
  // Words of at least three letters in a row of at least two are sentences, not names, ids or
  // tokens.
  const sentences = english
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /[A-Za-z]{3,} [a-z]{3,}/.test(line));
  expect(sentences.filter((line) => russian.has(line))).toEqual([]);
});

test('the keyboard alone: skip, type, prefill, decode, choose, bars, map, verify, help', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'Skip to the demo' })).toBeFocused();
  await page.keyboard.press('Enter');
  const focusOn = async (accept: () => Promise<boolean>): Promise<void> => {
    for (let presses = 0; presses < 60; ++presses) {
      if (await accept()) return;
      await page.keyboard.press('Tab');
    }
    throw new Error('the focus never came there');
  };
  const focused = (selector: string) => () =>
    page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector);
  await focusOn(focused('#prompt textarea'));
  await page.keyboard.press('Control+A');
  await page.keyboard.type('Tom had a red ball');
  const typed = await stories.tokenize('Tom had a red ball');
  await expect(page.getByTestId('prompt-chips').locator('.chip-id')).toHaveText(
    [...typed].map(String),
  );
  await focusOn(focused('#prompt .button.primary'));
  await page.keyboard.press('Enter');
  await expect(lab.fact('phase')).toHaveText('prefill');
  const n = (await lab.ids()).length;
  await expect(page.locator('#prompt .button.primary')).toBeFocused();
  await focusOn(focused('#decode .button'));
  await page.keyboard.press('Enter');
  await lab.rows(n + 1);
  await focusOn(focused('.candidate'));
  await page.keyboard.press('Space');
  await lab.rows(n + 2);
  await expect(lab.candidates.first()).toBeFocused();
  await focusOn(focused('.chip[data-position]'));
  await page.keyboard.press('ArrowLeft');
  await expect(lab.chips.nth(n)).toBeFocused();
  await expect(lab.chips.nth(n)).toHaveAttribute('aria-pressed', 'true');
  await focusOn(focused('.bars'));
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowDown');
  await expect(page.getByTestId('live-region')).toContainText('layer 0, KV head 1');
  await page.keyboard.press('Escape');
  await page.locator('.bars').blur();
  await page.keyboard.press('g');
  await lab.rows(n + 3);
  await page.keyboard.press('v');
  await expect(page.getByTestId('verification')).toContainText('Equal');
  await expect(page.getByTestId('live-region')).toHaveText('Verified: equal, bit for bit.');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
});

test('single-key shortcuts can be turned off', async ({ lab, page }) => {
  await lab.open();
  await page.keyboard.press('?');
  await page.getByLabel('Single-key shortcuts').uncheck();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.waitForTimeout(150);
  await lab.rows(17);
});

test('every focus is visible', async ({ lab, page }) => {
  await lab.open();
  for (let presses = 0; presses < 70; ++presses) {
    await page.keyboard.press('Tab');
    const unseen = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return undefined;
      const marked = [element, element.closest('label'), element.parentElement].some(
        (candidate) => {
          const style = candidate && getComputedStyle(candidate);
          return style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
        },
      );
      return marked ? undefined : element.outerHTML.slice(0, 120);
    });
    expect(unseen).toBeUndefined();
  }
});

test('with reduced motion nothing moves by itself', async ({ lab, page }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await lab.open();
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior)).toBe(
    'auto',
  );
  const moving = await page.evaluate(
    () =>
      [...document.querySelectorAll('*')].filter((element) => {
        const { transitionDuration, animationDuration } = getComputedStyle(element);
        return [transitionDuration, animationDuration].some((value) =>
          value.split(',').some((part) => parseFloat(part) > 0.01),
        );
      }).length,
  );
  expect(moving).toBe(0);
});
