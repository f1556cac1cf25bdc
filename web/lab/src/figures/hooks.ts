// What the components share with the browser: width, pixel density, drawing in an animation frame.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

/**
 * Width of an element in CSS pixels, 0 until it is known. An empty element before the contents measures the room
 * that they have.
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
