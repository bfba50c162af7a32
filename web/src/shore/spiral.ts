// The spiral: places on it by number, and the number at a place.
//
// It is an Archimedean spiral whose turns are as far apart as its dots, and that distance is 1. The arc from the middle
// to the angle θ is about θ²/4π, so dot i lies at θ = √(4πi), at the radius θ/2π.

const TURN = 2 * Math.PI;

// Near the middle the arc is longer than the formula says. With this shift the first dots are as far apart as the others.
const SHIFT = 0.6;

/** The least number of places that the picture has room for, so that few dots are not huge. */
export const LEAST_PLACES = 24;

/** Return the angle of a place. */
export function angleOf(index: number): number {
  return Math.sqrt(2 * TURN * (index + SHIFT));
}

/** Return the radius of a place, in distances between dots. */
export function radiusOf(index: number): number {
  return angleOf(index) / TURN;
}

/** Return the place nearest to a point, or -1 if none is within `reach`. */
export function placeAt(x: number, y: number, count: number, reach: number): number {
  const angle = Math.atan2(y, x);
  const turns = Math.round(Math.hypot(x, y) - angle / TURN);
  let best = -1;
  let least = reach * reach;
  for (let turn = turns - 1; turn <= turns + 1; turn++) {
    const whole = angle + TURN * turn;
    if (whole < -1) continue;
    const near = Math.round(Math.max(0, whole) ** 2 / (2 * TURN) - SHIFT);
    for (let index = Math.max(0, near - 1); index <= Math.min(count - 1, near + 1); index++) {
      const at = angleOf(index);
      const r = at / TURN;
      const distance = (r * Math.cos(at) - x) ** 2 + (r * Math.sin(at) - y) ** 2;
      if (distance <= least) {
        least = distance;
        best = index;
      }
    }
  }
  return best;
}

/** Which life is at which place of the spiral. */
export interface Frame {
  /** The life at each place from `core` on; -1 in the core. */
  lifeAt: Int32Array;
  /** The place of each life, or -1 if it is in the core or in a squeezed turn. */
  placeOf: Int32Array;
  /** Places that the core takes, in which nothing is drawn but a number. */
  core: number;
  /** Lives that are squeezed. */
  squeezed: number;
}

// Places of the core of a picture in which turns are squeezed: so many, or a share of the others, for its number.
const LEAST_CORE = 28;
const CORE_SHARE = 0.05;

/** Return the frame in which every life has its place. */
export function wholeFrame(count: number): Frame {
  return { lifeAt: Int32Array.from({ length: count }, (_, index) => index), placeOf: Int32Array.from({ length: count }, (_, index) => index), core: 0, squeezed: 0 };
}

/** Return the frame without the turns in which no life is alive: they become a core with a number. */
export function tideFrame(isAlive: (life: number) => boolean, count: number): Frame {
  const kept: number[] = [];
  let begin = 0;
  for (let turn = 0; begin < count; turn++) {
    // Turn t ends at the angle 2π(t + 1), which is about place π(t + 1)².
    const end = Math.min(count, Math.floor(Math.PI * (turn + 1) ** 2));
    let hasLife = false;
    for (let life = begin; life < end && !hasLife; life++) hasLife = isAlive(life);
    if (hasLife) for (let life = begin; life < end; life++) kept.push(life);
    begin = end;
  }
  const squeezed = count - kept.length;
  const core = Math.max(LEAST_CORE, Math.round(kept.length * CORE_SHARE));
  if (squeezed < core * 2) return wholeFrame(count);
  const placeOf = new Int32Array(count).fill(-1);
  const lifeAt = new Int32Array(kept.length + core).fill(-1);
  kept.forEach((life, index) => {
    placeOf[life] = index + core;
    lifeAt[index + core] = life;
  });
  return { lifeAt, placeOf, core, squeezed };
}
