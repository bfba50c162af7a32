// Buttons that go through the pages of a list whose length is known.
import { words } from "../words";

export function Pages({ page, size, count, onPage }: { page: number; size: number; count: number; onPage: (page: number) => void }) {
  const t = words.value;
  const last = Math.max(0, Math.ceil(count / size) - 1);
  if (last === 0) return null;
  return (
    <p class="pages">
      <button type="button" disabled={page === 0} onClick={() => onPage(0)}>{t.first}</button>
      <button type="button" disabled={page === 0} onClick={() => onPage(page - 1)}>{t.previous}</button>
      <span>{t.pageOf(page * size + 1, Math.min(count, (page + 1) * size), count)}</span>
      <button type="button" disabled={page >= last} onClick={() => onPage(page + 1)}>{t.next}</button>
      <button type="button" disabled={page >= last} onClick={() => onPage(last)}>{t.last}</button>
    </p>
  );
}
