export default function Neighbourhood(_: { agent: string; node: unknown }) {
  return null;
}
