// A part that can be folded away. Hidden contents are not rendered: at full speed every token would
// render them again.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

interface FoldProps {
  readonly summary: ComponentChildren;
  readonly children: () => ComponentChildren;
  readonly class?: string;
  readonly open?: boolean;
  readonly testId?: string;
}

export function Fold({ summary, children, class: name, open: first = false, testId }: FoldProps) {
  const [open, setOpen] = useState(first);
  return (
    <details
      class={name}
      open={open}
      data-testid={testId}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{summary}</summary>
      {open && children()}
    </details>
  );
}
