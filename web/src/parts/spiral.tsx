// The spiral as a part of a page: it draws, and answers to the pointer and the keyboard.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Camera, type Colours, draw, type Picture, scaleOf, type Size, toCanvas, toSpiral } from "../shore/draw";
import { UNBORN } from "../shore/life";
import { placeAt } from "../shore/spiral";
import { isDark } from "../settings";
import { words } from "../words";

const HOME: Camera = { zoom: 1, x: 0, y: 0 };
const MOST_ZOOM = 60;
const ZOOM_STEP = 1.5;
const CLICK_PX = 4;
const REACH_PX = 14;

interface Props {
  picture: Omit<Picture, "hovered">;
  description: string;
  onChoose: (life: number) => void;
  onHover: (life: number) => void;
  onVisible: (lives: readonly number[]) => void;
  isWhole: boolean;
  onWhole: () => void;
}

/** Most memories whose phrases are written beside them. */
export const MOST_LABELS = 40;

export function Spiral({ picture, description, onChoose, onHover, onVisible, isWhole, onWhole }: Props) {
  const t = words.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const known = useRef<Size>({ width: 0, height: 0, ratio: 1 });
  const [size, setSize] = useState<Size>(known.current);
  const [camera, setCamera] = useState<Camera>(HOME);
  const [hovered, setHovered] = useState(-1);
  const drag = useRef<{ x: number; y: number; camera: Camera; isMoved: boolean } | undefined>(undefined);
  const isDrawn = useRef(false);
  const frame = picture.frame;

  useLayoutEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    const measure = () => {
      const { width, height } = element.getBoundingClientRect();
      const ratio = Math.min(3, devicePixelRatio || 1);
      // An observer reports the first size too, which is known.
      const old = known.current;
      if (old.width === width && old.height === height && old.ratio === ratio) return;
      known.current = { width, height, ratio };
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
      setSize(known.current);
    };
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    measure();
    return () => watcher.disconnect();
  }, []);

  // The number of dots changes while a memory grows, and each of them moves. The view stays where the user put it.
  useEffect(() => setCamera(HOME), [isWhole]);

  useLayoutEffect(() => {
    if (size.width === 0) return;
    const paint = () => {
      const context = canvas.current?.getContext("2d");
      if (!context) return;
      draw(context, size, camera, { ...picture, hovered }, coloursOf(canvas.current as HTMLElement));
      document.documentElement.dataset["drawn"] = String(Number(document.documentElement.dataset["drawn"] ?? 0) + 1);
    };
    // The first picture is part of the frame in which the canvas appears.
    if (!isDrawn.current) {
      isDrawn.current = true;
      return paint();
    }
    const turn = requestAnimationFrame(paint);
    return () => cancelAnimationFrame(turn);
  }, [picture, hovered, size, camera, isDark.value]);

  useEffect(() => {
    if (size.width > 0) onVisible(visible(picture, size, camera));
  }, [picture.frame, picture.levels, size, camera]);

  const lifeAt = (event: { clientX: number; clientY: number }): number => {
    const box = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const [x, y] = toSpiral(event.clientX - box.left, event.clientY - box.top, size, frame, camera);
    const reach = Math.max(0.5, REACH_PX / scaleOf(size, frame, camera));
    const place = placeAt(x, y, frame.lifeAt.length, reach);
    const life = place < frame.core ? -1 : (frame.lifeAt[place] ?? -1);
    return life >= 0 && picture.levels[life] !== UNBORN ? life : -1;
  };
  const hover = (life: number) => {
    if (life === hovered) return;
    setHovered(life);
    onHover(life);
  };
  const zoom = (factor: number, px = size.width / 2, py = size.height / 2) => setCamera((one) => zoomed(one, factor, px, py, size));

  const onWheel = (event: WheelEvent) => {
    // A wheel without Ctrl scrolls the page, unless the picture is enlarged already.
    if (!event.ctrlKey && camera.zoom === 1 && event.deltaY > 0) return;
    event.preventDefault();
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, y: event.clientY, camera, isMoved: false };
  };
  const onPointerMove = (event: PointerEvent) => {
    const begun = drag.current;
    if (!begun) return hover(lifeAt(event));
    const [dx, dy] = [event.clientX - begun.x, event.clientY - begun.y];
    begun.isMoved ||= Math.hypot(dx, dy) > CLICK_PX;
    if (begun.isMoved && begun.camera.zoom > 1) setCamera({ ...begun.camera, x: begun.camera.x + dx, y: begun.camera.y + dy });
  };
  const onPointerUp = (event: PointerEvent) => {
    const begun = drag.current;
    drag.current = undefined;
    if (begun && !begun.isMoved) onChoose(lifeAt(event));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.key === "Escape") return onChoose(-1);
    if (event.key === "+" || event.key === "=") return zoom(ZOOM_STEP);
    if (event.key === "-") return zoom(1 / ZOOM_STEP);
    if (step === undefined) return;
    event.preventDefault();
    const next = stepped(picture, step);
    if (next >= 0) onChoose(next);
  };

  return (
    <div class="spiral">
      <canvas
        ref={canvas} role="img" tabIndex={0} aria-label={description} class={hovered >= 0 ? "over" : ""}
        onWheel={onWheel} onPointerDown={onPointerDown} onPointerMove={onPointerMove} onPointerUp={onPointerUp}
        onPointerLeave={() => hover(-1)} onKeyDown={onKeyDown}
      />
      <div class="zoom">
        <button type="button" title={t.zoomIn} aria-label={t.zoomIn} onClick={() => zoom(ZOOM_STEP)}>+</button>
        <button type="button" title={t.zoomOut} aria-label={t.zoomOut} onClick={() => zoom(1 / ZOOM_STEP)}>−</button>
        <button type="button" title={isWhole ? t.tide : t.fit} aria-label={isWhole ? t.tide : t.fit} aria-pressed={isWhole} onClick={onWhole}>⤢</button>
      </div>
    </div>
  );
}

const STEPS: Record<string, number | "first" | "last"> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: "first", End: "last" };

function stepped({ frame, levels, chosen }: Pick<Picture, "frame" | "levels" | "chosen">, step: number | "first" | "last"): number {
  const count = frame.lifeAt.length;
  const direction = step === "first" || step === 1 ? 1 : -1;
  const begin = step === "first" ? frame.core - 1 : step === "last" || chosen < 0 ? count : (frame.placeOf[chosen] ?? count);
  for (let place = begin + direction; place >= frame.core && place < count; place += direction) {
    const life = frame.lifeAt[place] as number;
    if (levels[life] !== UNBORN) return life;
  }
  return -1;
}

function zoomed(camera: Camera, factor: number, px: number, py: number, size: Size): Camera {
  const zoom = Math.max(1, Math.min(MOST_ZOOM, camera.zoom * factor));
  if (zoom === 1) return HOME;
  const real = zoom / camera.zoom;
  const [x, y] = [px - size.width / 2, py - size.height / 2];
  return { zoom, x: x - (x - camera.x) * real, y: y - (y - camera.y) * real };
}

// The lives in sight, or none if there are too many to label.
function visible({ frame, levels }: Pick<Picture, "frame" | "levels">, size: Size, camera: Camera): number[] {
  const lives: number[] = [];
  for (let place = frame.core; place < frame.lifeAt.length; place++) {
    const life = frame.lifeAt[place] as number;
    if (levels[life] === UNBORN) continue;
    const [x, y] = toCanvas(place, size, frame, camera);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    lives.push(life);
    if (lives.length > MOST_LABELS) return [];
  }
  return lives;
}

let theme: { isDark: boolean; colours: Colours } | undefined;

function coloursOf(element: HTMLElement): Colours {
  if (theme?.isDark === isDark.value) return theme.colours;
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const colours: Colours = {
    whole: of("whole"), shortened: of("shortened"), forgotten: of("ring"), focus: of("gold"), chosen: of("text"),
    incoming: of("incoming"), outgoing: of("outgoing"), text: of("text"), quiet: of("quiet"), ground: of("ground"),
  };
  theme = { isDark: isDark.value, colours };
  return colours;
}

