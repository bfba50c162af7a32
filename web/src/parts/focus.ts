// Where the keyboard begins on a screen.

/**
 * Focus an element when it appears, unless something has the focus already. For `ref`.
 *
 * The attribute `autofocus` does the same, but later, and the browser complains if the user was faster.
 */
export function focused(element: HTMLElement | null): void {
  if (document.activeElement === document.body) element?.focus({ preventScroll: true });
}
