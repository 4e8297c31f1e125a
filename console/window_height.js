/**
 * The height of the window that is not covered by the keyboard of a phone, for the style sheets.
 *
 * Some browsers lay the keyboard over the page without making the page smaller; only the visual
 * viewport tells.
 */
export function followWindowHeight() {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const follow = () => {
    if (viewport.scale !== 1) return; // zoomed in by the user: the page keeps its size
    document.documentElement.style.setProperty('--window-height', `${viewport.height}px`);
    window.scrollTo(0, 0);
  };
  viewport.addEventListener('resize', follow);
  follow();
}
