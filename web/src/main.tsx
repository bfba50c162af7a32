import { render } from "preact";

render(<p>Ebbtide</p>, document.getElementById("view") as HTMLElement);
