// What the components share with the browser: width, pixel density, drawing in an animation frame.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

/**
 * Width of an element in CSS pixels, 0 until it is known. An empty element before the contents
 * measures the room that they have.
 */
export function useWidth(ref: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref]);
  return width;
}

/** Device pixels of a CSS pixel; zooming the page changes it. */
export function usePixelRatio(): number {
  const [ratio, setRatio] = useState(() => window.devicePixelRatio);
  useEffect(() => {
    const update = () => setRatio(window.devicePixelRatio);
    window.addEventListener('resize', update);
    return () => window.removeEventListener('resize', update);
  }, []);
  return ratio;
}

/** Runs `draw` in the next animation frame, once for all changes of `inputs` until then. */
export function useDrawing(draw: () => void, inputs: readonly unknown[]): void {
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [...inputs]);
}

/**
 * `value`, or while `key` keeps moving the one of at most `milliseconds` ago: for what costs more
 * than a frame. A change that leaves `key` is there at once.
 */
export function useThrottled<T>(value: T, key: unknown, milliseconds: number): T {
  const shown = useRef({ value, key, at: 0 });
  const [, again] = useState(0);
  const now = performance.now();
  const due = shown.current.at + milliseconds - now;
  if (key === shown.current.key || due <= 0)
    shown.current = { value, key, at: key === shown.current.key ? shown.current.at : now };
  const late = key !== shown.current.key;
  useEffect(() => {
    if (!late) return;
    const timer = setTimeout(() => again((n) => n + 1), Math.max(0, due));
    return () => clearTimeout(timer);
  });
  return shown.current.value;
}
