// Draws the spiral on a canvas.
import { angleOf, type Frame, LEAST_PLACES, radiusOf } from "./spiral";
import { FORGOTTEN, UNBORN, WHOLE } from "./life";

const LARGEST_DOT_PX = 11;
const SMALLEST_ROUND_PX = 1.3;
const LEAST_SHARE = 0.34;
// On both grounds the contrast of the smallest dots stays above 3 : 1.
const LEAST_ALPHA = 0.7;
const MARGIN_PX = 26;
const LEAST_LABEL = 8;
// What the buttons at the upper right take of the picture.
const BUTTONS_PX = { width: 40, height: 116 };
// Where a label is tried: beside its dot, then a little above and below.
const LINES = [0, -1, 1];

/** Colours of the theme, as the style sheet names them. */
export interface Colours {
  whole: string;
  shortened: string;
  forgotten: string;
  focus: string;
  chosen: string;
  incoming: string;
  outgoing: string;
  text: string;
  quiet: string;
  ground: string;
}

/** How the picture is moved and enlarged. */
export interface Camera {
  zoom: number;
  x: number;
  y: number;
}

/** A link: between the memory that is chosen or under the pointer, and another one. */
export interface Chord {
  from: number;
  life: number;
  strength: number;
  isIncoming: boolean;
}

/** A name that memories far apart share. It lies outside the spiral. */
export interface Hub {
  name: string;
  lives: readonly number[];
}

export interface Picture {
  frame: Frame;
  levels: Uint8Array;
  isStatement: Uint8Array;
  focus: ReadonlySet<number>;
  /** Lives that a filter fades; undefined without one. */
  faded: Uint8Array | undefined;
  chosen: number;
  hovered: number;
  chords: readonly Chord[];
  hubs: readonly Hub[];
  labels: ReadonlyMap<number, string>;
  /** Whether labels are what the memories say at the pass that is drawn. They are quiet otherwise. */
  isNow: boolean;
  core: string;
}

export interface Size {
  width: number;
  height: number;
  ratio: number;
}

/** Return pixels per distance between dots. */
export function scaleOf(size: Size, frame: Frame, camera: Camera): number {
  const radius = radiusOf(Math.max(LEAST_PLACES, frame.lifeAt.length)) + 0.8;
  return ((Math.min(size.width, size.height) / 2 - MARGIN_PX) / radius) * camera.zoom;
}

/** Return a point of the canvas in distances between dots, from the middle of the spiral. */
export function toSpiral(px: number, py: number, size: Size, frame: Frame, camera: Camera): [number, number] {
  const scale = scaleOf(size, frame, camera);
  return [(px - size.width / 2 - camera.x) / scale, (py - size.height / 2 - camera.y) / scale];
}

/** Return where a place of the spiral is on the canvas. */
export function toCanvas(place: number, size: Size, frame: Frame, camera: Camera): [number, number] {
  const scale = scaleOf(size, frame, camera);
  const angle = angleOf(place);
  const radius = radiusOf(place) * scale;
  return [size.width / 2 + camera.x + radius * Math.cos(angle), size.height / 2 + camera.y + radius * Math.sin(angle)];
}

/** Draw the whole picture. */
export function draw(context: CanvasRenderingContext2D, size: Size, camera: Camera, picture: Picture, colours: Colours): void {
  context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  const scale = scaleOf(size, picture.frame, camera);
  const dot = Math.min(LARGEST_DOT_PX, 0.4 * scale);
  drawCore(context, size, camera, picture, colours, scale);
  drawChords(context, size, camera, picture, colours);
  drawDots(context, size, camera, picture, colours, dot);
  drawMarks(context, size, camera, picture, colours, dot);
  const names = drawHubs(context, size, camera, picture, colours);
  drawLabels(context, size, camera, picture, colours, dot, names);
}

function drawCore(context: CanvasRenderingContext2D, size: Size, camera: Camera, { frame, core }: Picture, colours: Colours, scale: number): void {
  if (frame.core === 0) return;
  const x = size.width / 2 + camera.x;
  const y = size.height / 2 + camera.y;
  const radius = (radiusOf(frame.core) - 0.7) * scale;
  context.setLineDash([2, 5]);
  context.strokeStyle = colours.forgotten;
  for (let ring = 1; ring <= 3; ring++) {
    context.beginPath();
    context.arc(x, y, (radius * ring) / 3, 0, 2 * Math.PI);
    context.stroke();
  }
  context.setLineDash([]);
  const height = Math.max(10, Math.min(16, radius / 3));
  context.font = `600 ${height}px system-ui, sans-serif`;
  // The number, and below it what it counts.
  const lines = core.split(/ (.*)/).filter(Boolean);
  if (lines.some((line) => context.measureText(line).width > radius * 1.9)) return;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 5;
  context.strokeStyle = colours.ground;
  context.fillStyle = colours.quiet;
  lines.forEach((line, row) => {
    const at = y + (row - (lines.length - 1) / 2) * height * 1.25;
    context.strokeText(line, x, at);
    context.fillText(line, x, at);
  });
  context.lineWidth = 1;
}

// Dots of one look are one path each: that is what makes drawing fast.
function drawDots(context: CanvasRenderingContext2D, size: Size, camera: Camera, picture: Picture, colours: Colours, dot: number): void {
  const { frame, levels, faded } = picture;
  const scale = scaleOf(size, frame, camera);
  const middleX = size.width / 2 + camera.x;
  const middleY = size.height / 2 + camera.y;
  const paths = new Map<number, Path2D>();
  const isRound = dot >= SMALLEST_ROUND_PX;
  for (let place = frame.core; place < frame.lifeAt.length; place++) {
    const life = frame.lifeAt[place] as number;
    const level = levels[life] as number;
    if (level === UNBORN) continue;
    const angle = angleOf(place);
    const radius = (angle / (2 * Math.PI)) * scale;
    const x = middleX + radius * Math.cos(angle);
    const y = middleY + radius * Math.sin(angle);
    if (x < -20 || y < -20 || x > size.width + 20 || y > size.height + 20) continue;
    const isFaded = faded !== undefined && faded[life] === 1;
    const look = (picture.focus.has(life) && level !== FORGOTTEN ? 32 : level) + (isFaded ? 64 : 0);
    let path = paths.get(look);
    if (!path) paths.set(look, (path = new Path2D()));
    addDot(path, x, y, dotRadius(level, dot), isRound, picture.isStatement[life] === 1);
  }
  for (const [look, path] of [...paths].sort(([a], [b]) => order(a) - order(b))) fillDots(context, look, path, colours, dot);
  context.globalAlpha = 1;
}

function order(look: number): number {
  const level = look & 31;
  return (look & 64 ? -100 : 0) + (look & 32 ? 50 : level === FORGOTTEN ? -1 : level);
}

function dotRadius(level: number, dot: number): number {
  if (level === FORGOTTEN) return dot * 0.62;
  return dot * (LEAST_SHARE + (1 - LEAST_SHARE) * Math.sqrt(level / WHOLE));
}

function addDot(path: Path2D, x: number, y: number, radius: number, isRound: boolean, isStatement: boolean): void {
  if (!isRound) path.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  else if (isStatement) {
    path.moveTo(x, y - radius * 1.2);
    path.lineTo(x + radius * 1.2, y);
    path.lineTo(x, y + radius * 1.2);
    path.lineTo(x - radius * 1.2, y);
    path.closePath();
  } else {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
  }
}

function fillDots(context: CanvasRenderingContext2D, look: number, path: Path2D, colours: Colours, dot: number): void {
  const level = look & 31;
  const isFocus = (look & 32) !== 0;
  context.globalAlpha = look & 64 ? 0.16 : 1;
  if (!isFocus && level === FORGOTTEN) {
    if (dot < SMALLEST_ROUND_PX) {
      context.globalAlpha *= 0.75;
      context.fillStyle = colours.forgotten;
      context.fill(path);
      return;
    }
    context.lineWidth = Math.max(0.8, Math.min(1.6, dot / 4));
    context.strokeStyle = colours.forgotten;
    context.stroke(path);
    return;
  }
  if (isFocus) context.fillStyle = colours.focus;
  else if (level === WHOLE) context.fillStyle = colours.whole;
  else {
    context.fillStyle = colours.shortened;
    context.globalAlpha *= LEAST_ALPHA + ((1 - LEAST_ALPHA) * level) / WHOLE;
  }
  context.fill(path);
}

// Chords bend towards the middle, so that they do not run along the turns.
function drawChords(context: CanvasRenderingContext2D, size: Size, camera: Camera, picture: Picture, colours: Colours): void {
  const { frame, chosen, levels } = picture;
  const pointOf = (life: number) => {
    const place = levels[life] === UNBORN ? -1 : (frame.placeOf[life] ?? -1);
    return place < 0 ? undefined : toCanvas(place, size, frame, camera);
  };
  context.lineCap = "round";
  for (const hub of hubPlaces(size, camera, picture)) {
    context.strokeStyle = colours.quiet;
    for (const life of hub.lives) {
      const to = pointOf(life);
      if (!to) continue;
      const isOwn = chosen < 0 || life === chosen;
      context.globalAlpha = isOwn ? 0.9 : 0.35;
      context.lineWidth = isOwn ? 1.6 : 1;
      curve(context, hub.x, hub.y, ...to, size, camera);
    }
  }
  for (const chord of picture.chords) {
    const [from, to] = [pointOf(chord.from), pointOf(chord.life)];
    if (!from || !to) continue;
    context.globalAlpha = 0.85;
    context.strokeStyle = chord.isIncoming ? colours.incoming : colours.outgoing;
    context.lineWidth = 1 + 2.5 * Math.min(1, chord.strength);
    // Two memories are often linked both ways: the two curves bend to different sides.
    curve(context, ...from, ...to, size, camera, chord.isIncoming ? -0.35 : 1);
  }
  context.globalAlpha = 1;
  context.lineWidth = 1;
}

function curve(context: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number, size: Size, camera: Camera, bend = 1): void {
  const middleX = size.width / 2 + camera.x;
  const middleY = size.height / 2 + camera.y;
  const pull = bend * Math.min(0.75, Math.hypot(toX - x, toY - y) / Math.min(size.width, size.height));
  context.beginPath();
  context.moveTo(x, y);
  context.quadraticCurveTo(
    (x + toX) / 2 + (middleX - (x + toX) / 2) * pull,
    (y + toY) / 2 + (middleY - (y + toY) / 2) * pull,
    toX,
    toY,
  );
  context.stroke();
}

/** Return where names lie: outside the spiral, near the memory that mentions them, or the newest one if a name is chosen. */
export function hubPlaces(size: Size, camera: Camera, { frame, chosen, hubs }: Pick<Picture, "frame" | "chosen" | "hubs">): (Hub & { x: number; y: number })[] {
  const from = frame.placeOf[chosen] ?? Math.max(-1, ...hubs.flatMap((hub) => hub.lives.map((life) => frame.placeOf[life] ?? -1)));
  if (from < 0) return [];
  const radius = (radiusOf(Math.max(LEAST_PLACES, frame.lifeAt.length)) + 0.9) * scaleOf(size, frame, camera);
  const step = Math.min(0.34, (2 * Math.PI) / Math.max(1, hubs.length));
  return hubs.map((hub, index) => {
    const angle = angleOf(from) + (index - (hubs.length - 1) / 2) * step;
    return { ...hub, x: size.width / 2 + camera.x + radius * Math.cos(angle), y: size.height / 2 + camera.y + radius * Math.sin(angle) };
  });
}

function drawMarks(context: CanvasRenderingContext2D, size: Size, camera: Camera, picture: Picture, colours: Colours, dot: number): void {
  const { frame } = picture;
  for (const [life, width] of [[picture.hovered, 1.5], [picture.chosen, 2.5]] as const) {
    const place = life < 0 ? -1 : (frame.placeOf[life] ?? -1);
    if (place < 0) continue;
    const [x, y] = toCanvas(place, size, frame, camera);
    context.lineWidth = width;
    context.strokeStyle = colours.chosen;
    context.beginPath();
    context.arc(x, y, Math.max(5, dot + 3.5), 0, 2 * Math.PI);
    context.stroke();
  }
}

// A name is written away from the spiral, shortened if need be, and over the dots only where it has no room at all. Return
// the boxes of what was drawn: labels must not cover names.
function drawHubs(context: CanvasRenderingContext2D, size: Size, camera: Camera, picture: Picture, colours: Colours): Box[] {
  context.font = "500 12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return hubPlaces(size, camera, picture).map((hub) => {
    context.fillStyle = colours.text;
    context.beginPath();
    context.rect(hub.x - 3.5, hub.y - 3.5, 7, 7);
    context.fill();
    const isOuter = hub.x > size.width / 2 + camera.x;
    const outside = shortenedTo(context, hub.name, (isOuter ? size.width - hub.x : hub.x) - 12);
    const name = outside || hub.name;
    const { width } = context.measureText(name);
    const isRight = isOuter === (outside !== "");
    const left = isRight ? hub.x + 9 : hub.x - 9 - width;
    writeOn(context, name, left, hub.y, colours.text, colours.ground);
    return [Math.min(left, hub.x - 4), hub.y - 8, Math.max(left + width, hub.x + 4), hub.y + 8];
  });
}

function writeOn(context: CanvasRenderingContext2D, text: string, x: number, y: number, colour: string, ground: string): void {
  context.textAlign = "left";
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = ground;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
  context.lineWidth = 1;
}

/** Left, top, right and bottom. */
type Box = readonly [number, number, number, number];

// A label is left out where it would cover another one, a name or a dot beside its own.
function drawLabels(context: CanvasRenderingContext2D, size: Size, camera: Camera, picture: Picture, colours: Colours, dot: number, names: readonly Box[]): void {
  const { frame, labels } = picture;
  if (labels.size === 0) return;
  context.font = "13px system-ui, sans-serif";
  context.textBaseline = "middle";
  const taken = [...names];
  for (let place = frame.core; place < frame.lifeAt.length; place++) {
    const [x, y] = toCanvas(place, size, frame, camera);
    taken.push([x - dot, y - dot, x + dot, y + dot]);
  }
  const order = [...labels].sort(([a], [b]) => Number(b === picture.chosen) - Number(a === picture.chosen) || b - a);
  for (const [life, text] of order) {
    const place = frame.placeOf[life] ?? -1;
    if (place < 0) continue;
    const [x, y] = toCanvas(place, size, frame, camera);
    const sides = x >= size.width / 2 + camera.x ? [true, false] : [false, true];
    const places = LINES.flatMap((line) => sides.map((isRight) => [isRight, y + line * (dot + 4)] as const));
    for (const [isRight, middle] of places) {
      const end = middle - 9 < BUTTONS_PX.height ? size.width - BUTTONS_PX.width : size.width;
      const fitting = shortenedTo(context, text, (isRight ? end - x : x) - dot - 10);
      const width = context.measureText(fitting).width;
      const left = isRight ? x + dot + 6 : x - dot - 6 - width;
      const box: Box = [left, middle - 9, left + width, middle + 9];
      if (!fitting || taken.some((one) => overlaps(one, box))) continue;
      taken.push(box);
      const colour = picture.levels[life] === FORGOTTEN || !picture.isNow ? colours.quiet : colours.text;
      writeOn(context, fitting, left, middle, colour, colours.ground);
      break;
    }
  }
}

// Return the beginning of a label that has room, or nothing if too little of it would be left.
function shortenedTo(context: CanvasRenderingContext2D, text: string, room: number): string {
  const { width } = context.measureText(text);
  if (width <= room) return text;
  const characters = [...text];
  const count = Math.floor((characters.length * room) / width) - 1;
  return count < LEAST_LABEL ? "" : `${characters.slice(0, count).join("")}…`;
}

function overlaps(a: Box, b: Box): boolean {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
