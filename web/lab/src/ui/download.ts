// Saves a file through the browser.
export function download(name: string, content: Blob | string, type = 'text/plain'): void {
  const blob = typeof content === 'string' ? new Blob([content], { type }) : content;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The click has taken the address by then; a minute is ample for the slowest save dialogue.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
