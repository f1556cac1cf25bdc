// Marks drawn here, each of one path in a 16 x 16 box.
const paths = {
  play: 'M4 2.5v11l9-5.5z',
  pause: 'M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z',
  reset:
    'M8 2a6 6 0 1 0 6 6h-1.8A4.2 4.2 0 1 1 8 3.8c1 0 2 .4 2.7 1L9 6.5h5v-5L12 3.6A6 6 0 0 0 8 2z',
  check: 'M6.3 12.6 1.9 8.2l1.5-1.5 2.9 2.9 6.3-6.3 1.5 1.5z',
  cross: 'M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z',
  previous: 'M10.5 2.5 12 4 8 8l4 4-1.5 1.5L5 8z',
  next: 'M5.5 2.5 4 4l4 4-4 4 1.5 1.5L11 8z',
  sun: 'M8 4.6a3.4 3.4 0 1 0 0 6.8 3.4 3.4 0 0 0 0-6.8zM7.2.8h1.6v2.4H7.2zM7.2 12.8h1.6v2.4H7.2zM.8 7.2h2.4v1.6H.8zM12.8 7.2h2.4v1.6h-2.4zM2.3 3.4l1.1-1.1 1.7 1.7L4 5.1zM10.9 12l1.1-1.1 1.7 1.7-1.1 1.1zM2.3 12.6 4 10.9 5.1 12l-1.7 1.7zM10.9 4l1.7-1.7 1.1 1.1L12 5.1z',
  moon: 'M6.2 1.4a6.8 6.8 0 1 0 8.4 8.4A5.6 5.6 0 0 1 6.2 1.4z',
  system: 'M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zm0 1.7v9.6a4.8 4.8 0 0 1 0-9.6z',
} as const;

export function Icon({ name }: { readonly name: keyof typeof paths }) {
  return (
    <svg class="icon-mark" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
