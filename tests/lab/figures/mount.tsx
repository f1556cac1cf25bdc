// Puts a figure on the page as the Lab does: its styles, a theme, a container of a width.
import axe from 'axe-core';
import { render, type ComponentChild } from 'preact';
import { expect, onTestFinished } from 'vitest';
import '../../../web/lab/src/styles/index.css';

export interface Mounted {
  readonly container: HTMLElement;
  /** Renders again, e.g. with other props. */
  readonly update: (child: ComponentChild) => Promise<void>;
}

/**
 * Until what was rendered is drawn: effects, the animation frame they ask for, and what that
 * renders.
 */
export async function drawn(): Promise<void> {
  for (let frame = 0; frame < 4; ++frame) await new Promise(requestAnimationFrame);
}

export async function mount(
  child: ComponentChild,
  { width = 640, theme = 'light' }: { readonly width?: number; readonly theme?: string } = {},
): Promise<Mounted> {
  document.documentElement.dataset['theme'] = theme;
  document.documentElement.lang = 'en';
  document.title = 'figures';
  const container = document.createElement('main');
  container.style.width = `${width}px`;
  document.body.append(container);
  onTestFinished(() => {
    render(null, container);
    container.remove();
  });
  const update = async (next: ComponentChild) => {
    render(next, container);
    await drawn();
  };
  await update(child);
  return { container, update };
}

export async function expectAccessible(container: HTMLElement): Promise<void> {
  const { violations } = await axe.run(container, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    // The page around the figures has the main heading.
    rules: { 'page-has-heading-one': { enabled: false } },
  });
  expect(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`),
  ).toEqual([]);
}

/** `#rrggbb` of a pixel of a canvas, or `none` where it is transparent. */
export function pixel(canvas: HTMLCanvasElement, x: number, y: number): string {
  const [r, g, b, a] = canvas.getContext('2d')!.getImageData(x, y, 1, 1).data as unknown as [
    number,
    number,
    number,
    number,
  ];
  return a === 0
    ? 'none'
    : `#${[r, g, b].map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}
