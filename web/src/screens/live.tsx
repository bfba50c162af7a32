export default function Screen({ agent }: { agent: string }) {
  return <div class="page"><h1>{agent}</h1></div>;
}
